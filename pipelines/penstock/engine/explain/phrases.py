"""The parts of a plan in words that a person would use."""

from typing import assert_never

from penstock.engine.plan import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterPunctuation,
    AfterWatermark,
    Aggregate,
    AsOf,
    Between,
    Calendar,
    ChangelogWindows,
    Collect,
    Count,
    CountPolicy,
    Custom,
    Default,
    DeltaPolicy,
    Distinct,
    Every,
    First,
    Fixed,
    Global,
    JoinMembers,
    Last,
    Max,
    Mean,
    Min,
    OfInput,
    OrFinally,
    PunctuationPolicy,
    Quantiles,
    Repeatedly,
    SameWindows,
    Sessions,
    Sliding,
    SlidingOrder,
    StatefulFunction,
    Sum,
    TimePolicy,
    TopN,
    Trigger,
    Tumbling,
    Window,
    predicate_sql,
)

DURATION_UNITS_MS = (
    ("day", 86_400_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1_000),
    ("ms", 1),
)
OrderPolicy = CountPolicy | DeltaPolicy | PunctuationPolicy | TimePolicy


def format_duration(milliseconds: int) -> str:
    """Say a duration: `1 hour 30 minutes`."""
    unit_phrases: list[str] = []
    for unit, length in DURATION_UNITS_MS:
        number, milliseconds = divmod(milliseconds, length)
        if number:
            unit_phrases.append(f"{number} {unit}{'s' if number > 1 and unit != 'ms' else ''}")
    return " ".join(unit_phrases) or "no time"


def format_delay(milliseconds: int) -> str:
    """Say by how much, if it is by anything: ` by 1 minute`."""
    return f" by {format_duration(milliseconds)}" if milliseconds else ""


def join_phrases(items: list[str], conjunction: str = "and") -> str:
    """Say a list: `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {conjunction} {items[-1]}"


def describe_window(plan_window: Window) -> str:
    """Say where results belong."""
    match plan_window:
        case Fixed(size, offset, time):
            return f"fixed windows of {format_duration(size)}{describe_offset(offset)}{describe_time_domain(time)}"
        case Sliding(size, period, offset, time):
            rhythm = f"{format_duration(period)}{describe_offset(offset)}{describe_time_domain(time)}"
            starts = f"that start every {rhythm}"
            return f"windows of {format_duration(size)} {starts}"
        case Sessions(gap):
            return f"sessions: a key's records with no gap of more than {format_duration(gap)} between them"
        case Calendar(unit, zone):
            return f"calendar {unit}s in {zone}"
        case Global():
            return "one window for all time"
        case SameWindows():
            return "the windows of what it reads"
        case Tumbling(close):
            return f"a key's records in their order, cut {describe_close_policy(close)}"
        case SlidingOrder(evict, show):
            retained = describe_eviction_policy(evict)
            return f"a key's newest records, keeping {retained}, shown {describe_trigger_policy(show)}"
        case Between(before, after):
            time_range = f"from {format_duration(before)} before to {format_duration(after)} after"
            return f"pairs, the right one {time_range} the left"
        case AsOf(tolerance, ends):
            tolerance_note = (
                "" if tolerance is None else f", and no more than {format_duration(tolerance)} older"
            )
            end_note = "" if ends is None else f", unless its {predicate_sql(ends)}"
            return f"pairs of a record with the newest that is no younger{tolerance_note}{end_note}"
        case StatefulFunction() if plan_window.is_pass_through:
            return "no windows: each record stands by itself"
        case StatefulFunction(order="event_time"):
            return "no windows: a key's records in the order of their event time, instant by instant"
        case StatefulFunction():
            return "no windows: a key's records in their order, one batch after the other"
        case ChangelogWindows():
            return "the windows of the panes that it reads"
        case _:
            assert_never(plan_window)


def describe_offset(offset: int) -> str:
    """Say an offset, if there is one."""
    return f", shifted by {format_duration(offset)}" if offset else ""


def describe_time_domain(time: str) -> str:
    """Say that the batch clock cuts the window."""
    return " of processing time (the batch clock)" if time == "processing" else ""


def describe_close_policy(policy: OrderPolicy) -> str:
    """Say where a tumbling order window is cut."""
    match policy:
        case CountPolicy(n):
            return f"after every {n} records"
        case DeltaPolicy(field, by):
            return f"before a record whose {field} is more than {by:g} above the window's first"
        case PunctuationPolicy(predicate):
            return f"after a record with {predicate_sql(predicate)}"
        case TimePolicy(elapsed):
            return f"{format_duration(elapsed)} after its first record, by the batch clock"
        case _:
            assert_never(policy)


def describe_eviction_policy(policy: OrderPolicy) -> str:
    """Say what a sliding order window keeps."""
    match policy:
        case CountPolicy(n):
            return f"the last {n}"
        case DeltaPolicy(field, by):
            return f"those whose {field} is at most {by:g} below the newest"
        case TimePolicy(elapsed):
            return f"those that came less than {format_duration(elapsed)} ago"
        case _:
            return describe_close_policy(policy)


def describe_trigger_policy(policy: OrderPolicy) -> str:
    """Say when a sliding order window is shown."""
    match policy:
        case CountPolicy(n):
            return f"after every {n} records"
        case DeltaPolicy(field, by):
            return f"whenever {field} has risen by more than {by:g}"
        case TimePolicy(elapsed):
            return f"{format_duration(elapsed)} after the first record that was not shown"
        case _:
            return describe_close_policy(policy)


def describe_trigger(plan_trigger: Trigger) -> str:
    """Say when panes appear."""
    match plan_trigger:
        case Default():
            return "when the watermark passes the end of the window, then with every batch of late records"
        case AfterWatermark(None, None):
            return "once, when the watermark passes the end of the window"
        case AfterWatermark(early, late):
            return describe_around_end(early, late)
        case AfterCount(n):
            return "when a record came" if n == 1 else f"when {n} records came"
        case AfterProcessingTime(delay):
            return f"{format_duration(delay)} after the first record, by the batch clock"
        case Every(period, offset):
            return f"every {format_duration(period)} of the batch clock{describe_offset(offset)}, if something came"
        case AfterPunctuation(predicate):
            return f"when a record with {predicate_sql(predicate)} came"
        case AfterAny(inner):
            return "at the first of: " + "; ".join(describe_trigger(part) for part in inner)
        case AfterAll(inner):
            return "when all of these have come true: " + "; ".join(describe_trigger(part) for part in inner)
        case AfterEach(inner):
            return "first " + "; then ".join(describe_trigger(part) for part in inner)
        case OrFinally(inner, until):
            return f"{describe_trigger(inner)}; until, at last, {describe_trigger(until)}"
        case Repeatedly(inner):
            return f"again and again: {describe_trigger(inner)}"
        case _:
            assert_never(plan_trigger)


def describe_around_end(early: Trigger | None, late: Trigger | None) -> str:
    """Say what happens before, at and after the end of the window."""
    late_firing = describe_trigger(late) if late else "with every batch of late records"
    return f"{describe_until_end(early)}; after it {late_firing}"


def describe_until_end(early: Trigger | None) -> str:
    """Say what happens before and at the end of the window."""
    if early is None:
        return "when the watermark passes the end of the window"
    return f"before the end of the window {describe_trigger(early)}; when the watermark passes the end"


def describe_aggregate(plan_aggregate: Aggregate, *, panes: bool = False) -> str:
    """Say what a column holds; over panes all values are kept, so that nothing of it is approximate."""
    match plan_aggregate:
        case Count(None):
            return "number of records"
        case Count(field):
            return f"number of records with {field}"
        case Sum(field):
            return f"sum of {field}"
        case Mean(field):
            return f"mean of {field}"
        case Min(field):
            return f"least {field}"
        case Max(field):
            return f"greatest {field}"
        case First(field, order):
            return f"first {field} by {order.replace('_', ' ')}"
        case Last(field, order):
            return f"last {field} by {order.replace('_', ' ')}"
        case Distinct(field, exact):
            return f"number of different {field}" + (
                "" if exact or panes else ", approximately (HyperLogLog)"
            )
        case TopN(field, n, by, largest):
            record_phrase = "record" if n == 1 else f"{n} records"
            return (
                f"{field} of the {record_phrase} with the {'greatest' if largest else 'least'} {by or field}"
            )
        case Quantiles(field, ranks):
            approximation_note = "" if panes else ", approximately (KLL)"
            return f"{field} at {join_phrases([f'{rank:g}' for rank in ranks])} of all{approximation_note}"
        case Collect(field):
            return f"all {field}"
        case Custom(fields, combiner):
            return f"{combiner.name} of {join_phrases(list(fields))}"
        case JoinMembers(input_, fields):
            return (
                f"{join_phrases(list(fields))} of every record of {input_}"
                if fields
                else f"records of {input_}"
            )
        case OfInput(input_, inner):
            return f"{describe_aggregate(inner, panes=panes)} of {input_} alone"
        case _:
            assert_never(plan_aggregate)
