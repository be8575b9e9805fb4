"""Where in event time: the SQL that gives a record its windows, [window_start, window_end) in milliseconds."""

from penstock.pipelines.plan.pairing import AsOf, Between
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.windows import Calendar, Fixed, Global, Sessions, Sliding, Window
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER


def window_starts(window: Window, time: str) -> str | None:
    """SQL for the array of the starts of a record's windows, from old to young; None where there is just one."""
    match window:
        case Sliding(size, period, offset):
            newest = f"({time} - pmod({time} - {offset}, {period}))"
            # A period above the size leaves gaps: then the newest start may lie too far back.
            oldest = f"({newest} - {period} * ((pmod({time} - {offset}, {period}) * -1 + {size} - 1) div {period}))"
            covered = f"pmod({time} - {offset}, {period}) < {size}"
            return f"CASE WHEN {covered} THEN sequence({oldest}, {newest}, {period}L) ELSE array() END"
        case _:
            return None


def window_bounds(window: Window, time: str) -> tuple[str, str]:
    """SQL for start and end; for windows that overlap `time` is the start that was chosen already."""
    match window:
        case Fixed(size, offset):
            start = f"({time} - pmod({time} - {offset}, {size}))"
            return start, f"({start} + {size})"
        case Sliding(size):
            return time, f"({time} + {size})"
        case Calendar(unit, zone):
            local = f"from_utc_timestamp(timestamp_millis({time}), '{zone}')"
            begin = f"date_trunc('{unit}', {local})"
            step = {"day": "INTERVAL 1 DAY", "week": "INTERVAL 7 DAY", "month": "INTERVAL 1 MONTH"}[unit]
            return _utc(begin, zone), _utc(f"({begin} + {step})", zone)
        case Sessions(gap):
            # The piece of time in which records are within one gap of each other, whatever session it is part of.
            start = f"({time} - pmod({time}, {gap}))"
            return start, f"({start} + {gap})"
        case Global():
            return f"{BEFORE_ALL + 1}L - 1L", f"{NEVER}L"
        case Between() | AsOf() | Remembering():
            return time, f"({time} + 1)"
        case _:
            raise TypeError(f"{window} is not decided by the time of a record")


def _utc(local: str, zone: str) -> str:
    return f"unix_millis(to_utc_timestamp({local}, '{zone}'))"
