"""The parts of a plan in words that a person would use."""

from typing import assert_never

from penstock.pipelines.plan import (
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
    Last,
    Max,
    Mean,
    Members,
    Min,
    OfInput,
    OrFinally,
    PunctuationPolicy,
    Quantiles,
    Relayed,
    Remembering,
    Repeatedly,
    SameWindows,
    Sessions,
    Sliding,
    SlidingOrder,
    Sum,
    TimePolicy,
    TopN,
    Trigger,
    Tumbling,
    Window,
    predicate_sql,
)

UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000), ("ms", 1))
Policy = CountPolicy | DeltaPolicy | PunctuationPolicy | TimePolicy


def duration(milliseconds: int) -> str:
    """Say a duration: `1 hour 30 minutes`."""
    said: list[str] = []
    for unit, length in UNITS:
        number, milliseconds = divmod(milliseconds, length)
        if number:
            said.append(f"{number} {unit}{'s' if number > 1 and unit != 'ms' else ''}")
    return " ".join(said) or "no time"


def by(milliseconds: int) -> str:
    """Say by how much, if it is by anything: ` by 1 minute`."""
    return f" by {duration(milliseconds)}" if milliseconds else ""


def joined(items: list[str], word: str = "and") -> str:
    """Say a list: `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"


def window(where: Window) -> str:
    """Say where results belong."""
    match where:
        case Fixed(size, offset, time):
            return f"fixed windows of {duration(size)}{shifted(offset)}{by_clock(time)}"
        case Sliding(size, period, offset, time):
            starts = f"that start every {duration(period)}{shifted(offset)}{by_clock(time)}"
            return f"windows of {duration(size)} {starts}"
        case Sessions(gap):
            return f"sessions: a key's records with no gap of more than {duration(gap)} between them"
        case Calendar(unit, zone):
            return f"calendar {unit}s in {zone}"
        case Global():
            return "one window for all time"
        case SameWindows():
            return "the windows of what it reads"
        case Tumbling(close):
            return f"a key's records in their order, cut {cut(close)}"
        case SlidingOrder(evict, show):
            return f"a key's newest records, keeping {kept(evict)}, shown {shown(show)}"
        case Between(before, after):
            return f"pairs, the right one from {duration(before)} before to {duration(after)} after the left"
        case AsOf(tolerance, ends):
            oldest = "" if tolerance is None else f", and no more than {duration(tolerance)} older"
            until = "" if ends is None else f", unless its {predicate_sql(ends)}"
            return f"pairs of a record with the newest that is no younger{oldest}{until}"
        case Remembering() if where.passes:
            return "no windows: each record stands by itself"
        case Remembering(order="event_time"):
            return "no windows: a key's records in the order of their event time, instant by instant"
        case Remembering():
            return "no windows: a key's records in their order, one batch after the other"
        case Relayed():
            return "the windows of the panes that it reads"
        case _:
            assert_never(where)


def shifted(offset: int) -> str:
    """Say an offset, if there is one."""
    return f", shifted by {duration(offset)}" if offset else ""


def by_clock(time: str) -> str:
    """Say that the batch clock cuts the window."""
    return " of processing time (the batch clock)" if time == "processing" else ""


def cut(policy: Policy) -> str:
    """Say where a tumbling order window is cut."""
    match policy:
        case CountPolicy(n):
            return f"after every {n} records"
        case DeltaPolicy(field, by):
            return f"before a record whose {field} is more than {by:g} above the window's first"
        case PunctuationPolicy(predicate):
            return f"after a record with {predicate_sql(predicate)}"
        case TimePolicy(elapsed):
            return f"{duration(elapsed)} after its first record, by the batch clock"
        case _:
            assert_never(policy)


def kept(policy: Policy) -> str:
    """Say what a sliding order window keeps."""
    match policy:
        case CountPolicy(n):
            return f"the last {n}"
        case DeltaPolicy(field, by):
            return f"those whose {field} is at most {by:g} below the newest"
        case TimePolicy(elapsed):
            return f"those that came less than {duration(elapsed)} ago"
        case _:
            return cut(policy)


def shown(policy: Policy) -> str:
    """Say when a sliding order window is shown."""
    match policy:
        case CountPolicy(n):
            return f"after every {n} records"
        case DeltaPolicy(field, by):
            return f"whenever {field} has risen by more than {by:g}"
        case TimePolicy(elapsed):
            return f"{duration(elapsed)} after the first record that was not shown"
        case _:
            return cut(policy)


def trigger(when: Trigger) -> str:
    """Say when panes appear."""
    match when:
        case Default():
            return "when the watermark passes the end of the window, then with every batch of late records"
        case AfterWatermark(None, None):
            return "once, when the watermark passes the end of the window"
        case AfterWatermark(early, late):
            return around_end(early, late)
        case AfterCount(n):
            return "when a record came" if n == 1 else f"when {n} records came"
        case AfterProcessingTime(delay):
            return f"{duration(delay)} after the first record, by the batch clock"
        case Every(period, offset):
            return f"every {duration(period)} of the batch clock{shifted(offset)}, if something came"
        case AfterPunctuation(predicate):
            return f"when a record with {predicate_sql(predicate)} came"
        case AfterAny(of):
            return "at the first of: " + "; ".join(trigger(part) for part in of)
        case AfterAll(of):
            return "when all of these have come true: " + "; ".join(trigger(part) for part in of)
        case AfterEach(of):
            return "first " + "; then ".join(trigger(part) for part in of)
        case OrFinally(of, until):
            return f"{trigger(of)}; until, at last, {trigger(until)}"
        case Repeatedly(of):
            return f"again and again: {trigger(of)}"
        case _:
            assert_never(when)


def around_end(early: Trigger | None, late: Trigger | None) -> str:
    """Say what happens before, at and after the end of the window."""
    after = trigger(late) if late else "with every batch of late records"
    return f"{up_to_end(early)}; after it {after}"


def up_to_end(early: Trigger | None) -> str:
    """Say what happens before and at the end of the window."""
    if early is None:
        return "when the watermark passes the end of the window"
    return f"before the end of the window {trigger(early)}; when the watermark passes the end"


def aggregate(what: Aggregate, *, panes: bool = False) -> str:
    """Say what a column holds; over panes all values are kept, so that nothing of it is approximate."""
    match what:
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
            many = "record" if n == 1 else f"{n} records"
            return f"{field} of the {many} with the {'greatest' if largest else 'least'} {by or field}"
        case Quantiles(field, ranks):
            about = "" if panes else ", approximately (KLL)"
            return f"{field} at {joined([f'{rank:g}' for rank in ranks])} of all{about}"
        case Collect(field):
            return f"all {field}"
        case Custom(fields, combiner):
            return f"{combiner.name} of {joined(list(fields))}"
        case Members(input_, fields):
            return f"{joined(list(fields))} of every record of {input_}" if fields else f"records of {input_}"
        case OfInput(input_, of):
            return f"{aggregate(of, panes=panes)} of {input_} alone"
        case _:
            assert_never(what)
