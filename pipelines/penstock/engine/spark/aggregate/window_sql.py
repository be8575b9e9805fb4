"""Builds the SQL that assigns a record to its windows, [window_start, window_end) in milliseconds."""

from penstock.engine.plan.join_windows import AsOf, Between
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.windows import Calendar, Fixed, Global, Sessions, Sliding, Window
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS


def window_starts_sql(window: Window, time_sql: str) -> str | None:
    """Return SQL for the starts of a record's windows, oldest first; None for kinds with one window per record."""
    match window:
        case Sliding(size, period, offset):
            newest = f"({time_sql} - pmod({time_sql} - {offset}, {period}))"
            # A period above the size leaves gaps: then the newest window may end before the record.
            into_period = f"pmod({time_sql} - {offset}, {period})"
            oldest = f"({newest} - {period} * (({into_period} * -1 + {size} - 1) div {period}))"
            covered = f"{into_period} < {size}"
            return f"CASE WHEN {covered} THEN sequence({oldest}, {newest}, {period}L) ELSE array() END"
        case _:
            return None


def window_bounds_sql(window: Window, time_sql: str) -> tuple[str, str]:
    """Return SQL for start and end; for windows that overlap, `time_sql` is the start of one of them."""
    match window:
        case Fixed(size, offset):
            start = f"({time_sql} - pmod({time_sql} - {offset}, {size}))"
            return start, f"({start} + {size})"
        case Sliding(size):
            return time_sql, f"({time_sql} + {size})"
        case Calendar(unit, zone):
            local = f"from_utc_timestamp(timestamp_millis({time_sql}), '{zone}')"
            local_start = f"date_trunc('{unit}', {local})"
            step = {"day": "INTERVAL 1 DAY", "week": "INTERVAL 7 DAY", "month": "INTERVAL 1 MONTH"}[unit]
            return _utc_millis_sql(local_start, zone), _utc_millis_sql(f"({local_start} + {step})", zone)
        case Sessions(gap):
            # A piece one gap long: all its records belong to the same session.
            start = f"({time_sql} - pmod({time_sql}, {gap}))"
            return start, f"({start} + {gap})"
        case Global():
            return f"{MIN_TIMESTAMP_MS + 1}L - 1L", f"{MAX_TIMESTAMP_MS}L"
        case Between() | AsOf() | StatefulFunction():
            return time_sql, f"({time_sql} + 1)"
        case _:
            raise TypeError(f"{window} does not follow from the time of a record")


def _utc_millis_sql(local_time_sql: str, zone: str) -> str:
    return f"unix_millis(to_utc_timestamp({local_time_sql}, '{zone}'))"
