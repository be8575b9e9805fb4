"""What runs a plan, part by part: on which tier, in how many tasks. Said from the plan and the settings alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from penstock.pipelines.explain import Running
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.source import Source, Topic
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.windows import PairWindow, Sessions, Window, in_order
from penstock.pipelines.spark.reading import SMALL
from penstock.pipelines.state.parts import COUNT
from penstock.pipelines.tables.places import own_tables, quarantines

EXECUTORS = "executors"
DRIVER = "driver"


@dataclass(frozen=True)
class Parallelism:
    """What is allowed: partitions of each topic, by its name, partitions of a shuffle, megabytes on the driver."""

    partitions: Mapping[str, int]
    shuffle: int
    budget_mb: int


def physical(plan: Plan, parallelism: Parallelism) -> tuple[Running, ...]:
    """Say what runs where. Which of the two sizes a batch has is decided batch by batch."""
    return (
        *(read(source, parallelism) for source in plan.sources),
        *repeats(plan),
        *lookups(plan),
        *(job(plan.first, parallelism) if len(plan.firsts) == 1 else shared(plan, parallelism)),
        *(part for stage in plan.stages for part in fold(plan, stage, parallelism)),
        Running("state", DRIVER, 1, "writes what changed as one sorted run, and merges runs as they add up"),
        *tables(plan),
        Running("ticker", DRIVER, 1, "runs a batch without records when a timer or an idle input is due"),
    )


def read(source: Source, parallelism: Parallelism) -> Running:
    """Say how an input is read."""
    asked = f", makes {len(source.checks)} checks of it" if source.checks else ""
    judged = f"parses each record{asked} and says what is no good"
    match source.origin:
        case Topic(topic, encoding):
            tasks = parallelism.partitions.get(topic, 1)
            if encoding == "avro":
                judged = f"by the schemas that the registry has of it {judged}"
            return Running(f"read {topic}", EXECUTORS, tasks, f"a task for each partition; {judged}")
        case files:
            return Running(
                f"read {files.path}", EXECUTORS, parallelism.shuffle, f"a task for each split; {judged}"
            )


def repeats(plan: Plan) -> Iterator[Running]:
    """Say where repeats are found, if they are looked for."""
    if any(source.deduplication for source in plan.sources):
        yield Running("ids", EXECUTORS, 1, "a job before the batch's own: fetches the ids of good records")
        yield Running("sift", DRIVER, 1, "tells repeats from first records by the ids that are remembered")


def lookups(plan: Plan) -> Iterator[Running]:
    """Say how tables are looked into."""
    for table in dict.fromkeys(step.table for step in plan.lookups):
        does = "reads it whole when its version is a new one; it goes to the executors, and no record is shuffled"
        yield Running(f"look up {table}", DRIVER, 1, does)


def job(stage: Stage, parallelism: Parallelism) -> Iterator[Running]:
    """Say what the one job of a batch does, for small batches and for others."""
    small = f"batch up to {SMALL:,} records"
    count = len(stage.steps) + sum(len(each.steps) for each in stage.prepared)
    steps = f"{count} {'step' if count == 1 else 'steps'}, then " if count else ""
    if in_order(stage.window):
        sends = f"{steps}sends every record{why_every(stage.window)}"
        yield Running(small, EXECUTORS, 1, sends)
        yield Running("larger batch", EXECUTORS, total(parallelism), sends)
        return
    piece = "piece of a session" if isinstance(stage.window, Sessions) else "window"
    partial = f"{steps}assigns windows and adds up partials per partition, key and {piece}"
    yield Running(small, EXECUTORS, 1, f"{partial}, without a shuffle")
    yield Running("larger batch", EXECUTORS, total(parallelism), f"{partial}, before a shuffle")
    yield Running(
        "its shuffle", EXECUTORS, parallelism.shuffle, "adds partials of one key and window together"
    )


def why_every(window: Window) -> str:
    """Say why a stage is sent single records."""
    if isinstance(window, PairWindow):
        return ": whom it meets is known where the others are held"
    if passes(window):
        return ", as a row"
    return ": nothing can be added up before the order is known"


def passes(window: Window) -> bool:
    """Tell whether a stage hands on what comes, in whatever order."""
    return isinstance(window, Relayed) or (isinstance(window, Remembering) and window.passes)


def shared(plan: Plan, parallelism: Parallelism) -> Iterator[Running]:
    """Say what the one job of a batch does where several stages go by the records."""
    names = " and ".join(stage.name for stage in plan.firsts)
    does = f"one pass over the records for {names}, each with steps, windows and partials of its own"
    yield Running(f"batch up to {SMALL:,} records", EXECUTORS, 1, f"{does}, without a shuffle")
    kept = f"{does}; parsed records are kept in memory meanwhile"
    yield Running("larger batch", EXECUTORS, total(parallelism), kept)
    partial = [stage.name for stage in plan.firsts if not in_order(stage.window)]
    if partial:
        adds = f"adds partials of one key and window together, of {' and '.join(partial)} apart"
        yield Running("its shuffle", EXECUTORS, parallelism.shuffle, adds)


def total(parallelism: Parallelism) -> int:
    """Return the tasks of a batch that reads every partition."""
    return sum(parallelism.partitions.values()) or parallelism.shuffle


def fold(plan: Plan, stage: Stage, parallelism: Parallelism) -> Iterator[Running]:
    """Say where windows are folded; a later stage takes over what is in memory already."""
    feeding = plan.feeding(stage)
    if feeding:
        names = " and ".join(each.name for each in feeding)
        does = f"folds the changes of {names} in the same pass: they go through no table, topic or shuffle"
        yield Running(f"fold {stage.name}", DRIVER, 1, does)
        return
    single, ordered = in_order(stage.window), not isinstance(stage.window, PairWindow)
    what = (
        ("records in their order" if ordered and not passes(stage.window) else "records")
        if single
        else "partials"
    )
    judged = "" if single else ", judges triggers"
    here = f"fetches {what} over Arrow, folds them with the state{judged}"
    if passes(stage.window):
        here = f"fetches {what} over Arrow, and hands them on"
    above = f"above {parallelism.budget_mb} MB: {COUNT} parts of the state, by key, after a shuffle of {what}"
    yield Running(f"fold {stage.name}", DRIVER, 1, here)
    yield Running(f"fold {stage.name} in parts", EXECUTORS, min(parallelism.shuffle, COUNT), above)


def tables(plan: Plan) -> Iterator[Running]:
    """Say how results and records that found no window are written."""
    count = len(own_tables(plan)) + len(quarantines(plan))
    yield Running(
        "single records", EXECUTORS, 1, "a job more, where records are late or no good: fetches them"
    )
    yield Running("tables", DRIVER, 1, f"a file and a commit for each of {count} tables that has rows")
    for topic in (topic.topic for stage in plan.stages for topic in stage.topics):
        yield Running(f"publish {topic}", DRIVER, 1, "sends the panes of a batch in one transaction")
