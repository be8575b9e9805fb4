"""What a pipeline keeps between batches, and when it goes."""

from dataclasses import dataclass

from penstock.pipelines.explain import words
from penstock.pipelines.plan import (
    Aggregate,
    AsOf,
    Between,
    Collect,
    CountPolicy,
    Custom,
    Distinct,
    First,
    Last,
    Members,
    OfInput,
    Plan,
    Quantiles,
    Relayed,
    Remembering,
    SlidingOrder,
    Source,
    Stage,
    TopN,
    Tumbling,
    by_processing_time,
    takes_back,
)
from penstock.pipelines.plan.check_when import lasts_for_ever

FOR_EVER = "a key's row with the number of its windows stays until the stream is dropped"
"""A key that comes again goes on counting its windows, however long it was silent."""


@dataclass(frozen=True)
class Kept:
    """Something that is kept, how much of it, and until when."""

    what: str
    size: str
    until: str


def kept(plan: Plan) -> tuple[Kept, ...]:
    """Say all that is kept."""
    sources = [item for source in plan.sources for item in kept_of_source(source)]
    keeping = (stage for stage in plan.stages if not keeps_nothing(stage))
    return (*sources, *(kept_of_stage(plan, stage) for stage in keeping))


def keeps_nothing(stage: Stage) -> bool:
    """Tell whether a stage only hands on what comes."""
    return isinstance(stage.window, Relayed) or (
        isinstance(stage.window, Remembering) and stage.window.passes
    )


def kept_of_source(source: Source) -> list[Kept]:
    """Say what is kept of an input."""
    marks = Kept(f"watermark of {source.name}", "two numbers per partition", "the stream is dropped")
    if source.deduplication is None:
        return [marks]
    horizon = words.duration(source.deduplication.horizon)
    ids = words.joined(list(source.deduplication.id))
    return [
        marks,
        Kept(
            f"ids of {source.name}",
            f"16 bytes for each different {ids}",
            f"they are {horizon} behind the watermark",
        ),
    ]


def kept_of_stage(plan: Plan, stage: Stage) -> Kept:
    """Say what is kept of a stage's windows; over changes, what cannot be taken back is kept value by value."""
    match stage.window:
        case Tumbling(close):
            bound = f", at most {close.n} of them" if isinstance(close, CountPolicy) else ""
            held = f"the records of one window per key{bound}, and how many windows it had"
            return Kept(f"open windows of {stage.name}", held, f"it is cut; {FOR_EVER}")
        case SlidingOrder(evict=evict):
            held = f"per key {words.kept(evict)} of its records, and how many windows it had"
            return Kept(f"windows of {stage.name}", held, f"they are evicted; {FOR_EVER}")
        case Between():
            until = "no partner can come any more"
            return Kept(f"records of {stage.name}", "their fields, and whether they met a partner", until)
        case AsOf(tolerance):
            passed = f"the watermark has passed them{words.by(stage.lateness)}"
            until = f"{passed}, versions until there is a newer one that old"
            until += f", or they are {words.duration(tolerance)} too old" if tolerance is not None else ""
            return Kept(f"records of {stage.name}", "those that wait, and versions of each key", until)
        case Remembering(state=state, forget_after=after) as window:
            until = "its function forgets it"
            if after is not None:
                until += f", or nothing was heard of it for {words.duration(after)} of event time"
            waits = ", and the records that the watermark has not passed" if window.by_time else ""
            return Kept(f"keys of {stage.name}", f"per key a {state.name} and its timers{waits}", until)
        case _:
            size = size_of_windows(stage, changes=bool(plan.feeding(stage)))
            return Kept(f"open windows of {stage.name}", size, closing(plan, stage))


def size_of_windows(stage: Stage, *, changes: bool) -> str:
    """Say how much is kept of each window of time."""
    columns = [
        f"{output.name} ({'all values' if changes and not keeps_little(output.of) else size_of(output.of)})"
        for output in stage.aggregates
    ]
    twice = ", once more as last shown" if stage.accumulation == "retracting" else ""
    return f"per key and window: its trigger, {words.joined(columns)}{twice}"


def keeps_little(aggregate: Aggregate) -> bool:
    """Tell whether an aggregate over changes keeps what it keeps over records; a join has every record anyway."""
    return takes_back(aggregate) or isinstance(aggregate, Members)


def size_of(aggregate: Aggregate) -> str:
    """Say how much an aggregate keeps."""
    match aggregate:
        case Collect():
            return "all values"
        case Distinct(exact=True):
            return "every different value"
        case Distinct(precision=precision):
            return f"a sketch of {2**precision} registers"
        case Quantiles(k=k):
            return f"a sketch of about {k} values per level"
        case TopN(n=n):
            return "a record" if n == 1 else f"{n} records"
        case First() | Last():
            return "a value with its time and address"
        case Custom():
            return "its partial"
        case Members():
            return "every record, with the fields that rows take"
        case OfInput(of=of):
            return size_of(of)
        case _:
            return "a few numbers"


def closing(plan: Plan, stage: Stage) -> str:
    """Say when a window of time goes."""
    if by_processing_time(stage.window):
        return "the batch clock passes its end"
    if lasts_for_ever(plan, stage):
        return "the input ends"
    extra = f" plus {words.duration(stage.lateness)}" if stage.lateness else ""
    return f"the watermark passes its end{extra}"
