"""What runs a plan, part by part: on which tier, in how many tasks. Said from the plan and the settings alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from penstock.engine.explain import PhysicalOperator
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.sources import PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.windows import JoinWindow, Sessions, Window, is_record_ordered
from penstock.engine.spark.batch_input import SMALL_BATCH_RECORDS
from penstock.engine.state.hash_parts import PART_COUNT
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths

EXECUTOR_TIER = "executors"
DRIVER_TIER = "driver"


@dataclass(frozen=True)
class Parallelism:
    """What is allowed: partitions of each topic, by its name, partitions of a shuffle, megabytes on the driver."""

    topic_partitions: Mapping[str, int]
    shuffle_partitions: int
    driver_budget_mb: int


def describe_physical_plan(plan: Plan, parallelism: Parallelism) -> tuple[PhysicalOperator, ...]:
    """Say what runs where. Which of the two sizes a batch has is decided batch by batch."""
    return (
        *(describe_read(source, parallelism) for source in plan.sources),
        *describe_dedup(plan),
        *describe_lookups(plan),
        *(
            describe_batch_job(plan.first_source_stage, parallelism)
            if len(plan.source_stages) == 1
            else describe_shared_job(plan, parallelism)
        ),
        *(part for stage in plan.stages for part in describe_operator(plan, stage, parallelism)),
        PhysicalOperator(
            "state", DRIVER_TIER, 1, "writes what changed as one sorted run, and merges runs as they add up"
        ),
        *describe_outputs(plan),
        PhysicalOperator(
            "ticker", DRIVER_TIER, 1, "runs a batch without records when a timer or an idle input is due"
        ),
    )


def describe_read(source: PlanSource, parallelism: Parallelism) -> PhysicalOperator:
    """Say how an input is read."""
    check_text = f", makes {len(source.checks)} checks of it" if source.checks else ""
    parse_text = f"parses each record{check_text} and says what is no good"
    match source.origin:
        case TopicOrigin(topic, encoding):
            tasks = parallelism.topic_partitions.get(topic, 1)
            if encoding == "avro":
                parse_text = f"by the schemas that the registry has of it {parse_text}"
            return PhysicalOperator(
                f"read {topic}", EXECUTOR_TIER, tasks, f"a task for each partition; {parse_text}"
            )
        case file_origin:
            return PhysicalOperator(
                f"read {file_origin.path}",
                EXECUTOR_TIER,
                parallelism.shuffle_partitions,
                f"a task for each split; {parse_text}",
            )


def describe_dedup(plan: Plan) -> Iterator[PhysicalOperator]:
    """Say where repeats are found, if they are looked for."""
    if any(source.deduplication for source in plan.sources):
        yield PhysicalOperator(
            "ids", EXECUTOR_TIER, 1, "a job before the batch's own: fetches the ids of good records"
        )
        yield PhysicalOperator(
            "sift", DRIVER_TIER, 1, "tells repeats from first records by the ids that are remembered"
        )


def describe_lookups(plan: Plan) -> Iterator[PhysicalOperator]:
    """Say how tables are looked into."""
    for table in dict.fromkeys(step.table for step in plan.lookups):
        description = (
            "reads it whole when its version is a new one; "
            "it goes to the executors, and no record is shuffled"
        )
        yield PhysicalOperator(f"look up {table}", DRIVER_TIER, 1, description)


def describe_batch_job(stage: Stage, parallelism: Parallelism) -> Iterator[PhysicalOperator]:
    """Say what the one job of a batch does, for small batches and for others."""
    small_batch = f"batch up to {SMALL_BATCH_RECORDS:,} records"
    step_count = len(stage.steps) + sum(len(prepared.steps) for prepared in stage.input_steps)
    steps_text = f"{step_count} {'step' if step_count == 1 else 'steps'}, then " if step_count else ""
    if is_record_ordered(stage.window):
        records_text = f"{steps_text}sends every record{explain_single_records(stage.window)}"
        yield PhysicalOperator(small_batch, EXECUTOR_TIER, 1, records_text)
        yield PhysicalOperator("larger batch", EXECUTOR_TIER, count_read_tasks(parallelism), records_text)
        return
    group_noun = "piece of a session" if isinstance(stage.window, Sessions) else "window"
    partials_text = f"{steps_text}assigns windows and adds up partials per partition, key and {group_noun}"
    yield PhysicalOperator(small_batch, EXECUTOR_TIER, 1, f"{partials_text}, without a shuffle")
    yield PhysicalOperator(
        "larger batch", EXECUTOR_TIER, count_read_tasks(parallelism), f"{partials_text}, before a shuffle"
    )
    yield PhysicalOperator(
        "its shuffle",
        EXECUTOR_TIER,
        parallelism.shuffle_partitions,
        "adds partials of one key and window together",
    )


def explain_single_records(window: Window) -> str:
    """Say why a stage is sent single records."""
    if isinstance(window, JoinWindow):
        return ": whom it meets is known where the others are held"
    if is_pass_through(window):
        return ", as a row"
    return ": nothing can be added up before the order is known"


def is_pass_through(window: Window) -> bool:
    """Tell whether a stage hands on what comes, in whatever order."""
    return isinstance(window, ChangelogWindows) or (
        isinstance(window, StatefulFunction) and window.is_pass_through
    )


def describe_shared_job(plan: Plan, parallelism: Parallelism) -> Iterator[PhysicalOperator]:
    """Say what the one job of a batch does where several stages go by the records."""
    stage_names = " and ".join(stage.name for stage in plan.source_stages)
    scan_text = (
        f"one pass over the records for {stage_names}, each with steps, windows and partials of its own"
    )
    yield PhysicalOperator(
        f"batch up to {SMALL_BATCH_RECORDS:,} records", EXECUTOR_TIER, 1, f"{scan_text}, without a shuffle"
    )
    large_scan_text = f"{scan_text}; parsed records are kept in memory meanwhile"
    yield PhysicalOperator("larger batch", EXECUTOR_TIER, count_read_tasks(parallelism), large_scan_text)
    partial_stages = [stage.name for stage in plan.source_stages if not is_record_ordered(stage.window)]
    if partial_stages:
        shuffle_text = (
            f"adds partials of one key and window together, of {' and '.join(partial_stages)} apart"
        )
        yield PhysicalOperator("its shuffle", EXECUTOR_TIER, parallelism.shuffle_partitions, shuffle_text)


def count_read_tasks(parallelism: Parallelism) -> int:
    """Return the tasks of a batch that reads every partition."""
    return sum(parallelism.topic_partitions.values()) or parallelism.shuffle_partitions


def describe_operator(plan: Plan, stage: Stage, parallelism: Parallelism) -> Iterator[PhysicalOperator]:
    """Say where windows are folded; a later stage takes over what is in memory already."""
    upstream_stages = plan.upstream_of(stage)
    if upstream_stages:
        stage_names = " and ".join(upstream.name for upstream in upstream_stages)
        description = (
            f"folds the changes of {stage_names} in the same pass: they go through no table, topic or shuffle"
        )
        yield PhysicalOperator(f"fold {stage.name}", DRIVER_TIER, 1, description)
        return
    takes_single_records, is_ordered = (
        is_record_ordered(stage.window),
        not isinstance(stage.window, JoinWindow),
    )
    payload = (
        ("records in their order" if is_ordered and not is_pass_through(stage.window) else "records")
        if takes_single_records
        else "partials"
    )
    trigger_text = "" if takes_single_records else ", judges triggers"
    driver_text = f"fetches {payload} over Arrow, folds them with the state{trigger_text}"
    if is_pass_through(stage.window):
        driver_text = f"fetches {payload} over Arrow, and hands them on"
    executor_text = (
        f"above {parallelism.driver_budget_mb} MB: "
        f"{PART_COUNT} parts of the state, by key, after a shuffle of {payload}"
    )
    yield PhysicalOperator(f"fold {stage.name}", DRIVER_TIER, 1, driver_text)
    yield PhysicalOperator(
        f"fold {stage.name} in parts",
        EXECUTOR_TIER,
        min(parallelism.shuffle_partitions, PART_COUNT),
        executor_text,
    )


def describe_outputs(plan: Plan) -> Iterator[PhysicalOperator]:
    """Say how results and records that found no window are written."""
    count = len(list_owned_paths(plan)) + len(list_quarantine_paths(plan))
    yield PhysicalOperator(
        "single records", EXECUTOR_TIER, 1, "a job more, where records are late or no good: fetches them"
    )
    yield PhysicalOperator(
        "tables", DRIVER_TIER, 1, f"a file and a commit for each of {count} tables that has rows"
    )
    for topic in (topic.topic for stage in plan.stages for topic in stage.topics):
        yield PhysicalOperator(
            f"publish {topic}", DRIVER_TIER, 1, "sends the panes of a batch in one transaction"
        )
