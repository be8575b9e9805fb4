"""Describes the physical plan of a pipeline for `explain`: which operator runs on which tier, in how many tasks.

The description follows from the plan and the settings alone; it needs neither Spark nor Kafka.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from penstock.engine.explain import PhysicalOperator
from penstock.engine.plan.sources import PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.spark.batch_records import SMALL_BATCH_RECORDS
from penstock.engine.state.hash_parts import PART_COUNT
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths
from penstock.engine.windows.join_window import JoinWindow
from penstock.engine.windows.window import Window
from penstock.ingestion.contracts.record_formats.format_discovery import find_record_format

EXECUTOR_TIER = "executors"
DRIVER_TIER = "driver"


@dataclass(frozen=True)
class Parallelism:
    """The partitions of each topic, the partitions of a shuffle, and the megabytes that the driver may process."""

    topic_partitions: Mapping[str, int]
    shuffle_partitions: int
    driver_budget_mb: int


def describe_physical_plan(plan: Plan, parallelism: Parallelism) -> tuple[PhysicalOperator, ...]:
    """Return the operators of a plan. The engine decides for each batch whether it is small or large."""
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
            "state", DRIVER_TIER, 1, "writes changes as one sorted run, and merges runs in the background"
        ),
        *describe_outputs(plan),
        PhysicalOperator(
            "ticker", DRIVER_TIER, 1, "runs a batch without records when a timer or an idle timeout is due"
        ),
    )


def describe_read(source: PlanSource, parallelism: Parallelism) -> PhysicalOperator:
    """Describe how an input is read."""
    check_text = f" and runs {len(source.checks)} checks on it" if source.checks else ""
    parse_text = f"parses each record{check_text}, marks invalid ones"
    match source.origin:
        case TopicOrigin(topic, encoding):
            tasks = parallelism.topic_partitions.get(topic, 1)
            record_format = find_record_format(encoding)
            if record_format.has_writer_schemas:
                parse_text = f"{parse_text}, with writer schemas from the registry"
            if record_format.stream_parser == "python":
                parse_text = f"{parse_text}; {encoding} is decoded in Python"
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
    """Describe how duplicates are found, if an input is deduplicated."""
    if any(source.deduplication for source in plan.sources):
        yield PhysicalOperator(
            "record ids", EXECUTOR_TIER, 1, "a job before that of the batch: fetches the ids of valid records"
        )
        yield PhysicalOperator("deduplicate", DRIVER_TIER, 1, "finds duplicates by the ids in the state")


def describe_lookups(plan: Plan) -> Iterator[PhysicalOperator]:
    """Describe how lookup tables are read and joined."""
    for table in dict.fromkeys(step.table for step in plan.lookups):
        description = (
            "reads the whole table when its version changes, and broadcasts it to the executors; "
            "no record is shuffled"
        )
        yield PhysicalOperator(f"look up {table}", DRIVER_TIER, 1, description)


def describe_batch_job(stage: Stage, parallelism: Parallelism) -> Iterator[PhysicalOperator]:
    """Describe the job of a batch, for small and for larger batches."""
    small_batch = f"batch up to {SMALL_BATCH_RECORDS:,} records"
    step_count = len(stage.steps) + sum(len(prepared.steps) for prepared in stage.input_steps)
    steps_text = f"{step_count} {'step' if step_count == 1 else 'steps'}, then " if step_count else ""
    if stage.window.is_record_ordered:
        records_text = f"{steps_text}sends every record{explain_single_records(stage.window)}"
        yield PhysicalOperator(small_batch, EXECUTOR_TIER, 1, records_text)
        yield PhysicalOperator("larger batch", EXECUTOR_TIER, count_read_tasks(parallelism), records_text)
        return
    group_noun = "piece of a session" if stage.window.merge_gap is not None else "window"
    partials_text = f"{steps_text}assigns windows and aggregates partials per partition, key and {group_noun}"
    yield PhysicalOperator(small_batch, EXECUTOR_TIER, 1, f"{partials_text}, without a shuffle")
    yield PhysicalOperator(
        "larger batch", EXECUTOR_TIER, count_read_tasks(parallelism), f"{partials_text}, before a shuffle"
    )
    yield PhysicalOperator(
        "its shuffle",
        EXECUTOR_TIER,
        parallelism.shuffle_partitions,
        "merges partials of the same key and window",
    )


def explain_single_records(window: Window) -> str:
    """Return why the driver gets single records of a stage."""
    if isinstance(window, JoinWindow):
        return ": matches are found in the state of the other side"
    if not window.keeps_state:
        return ", as a row"
    return ": nothing can be aggregated before the order is known"


def describe_shared_job(plan: Plan, parallelism: Parallelism) -> Iterator[PhysicalOperator]:
    """Describe the job of a batch when several stages read the records."""
    stage_names = " and ".join(stage.name for stage in plan.source_stages)
    scan_text = f"one pass over the records for {stage_names}, each with its own steps, windows and partials"
    yield PhysicalOperator(
        f"batch up to {SMALL_BATCH_RECORDS:,} records", EXECUTOR_TIER, 1, f"{scan_text}, without a shuffle"
    )
    large_scan_text = f"{scan_text}; parsed records are kept in memory meanwhile"
    yield PhysicalOperator("larger batch", EXECUTOR_TIER, count_read_tasks(parallelism), large_scan_text)
    partial_stages = [stage.name for stage in plan.source_stages if not stage.window.is_record_ordered]
    if partial_stages:
        shuffle_text = (
            f"merges partials of the same key and window, separately for {' and '.join(partial_stages)}"
        )
        yield PhysicalOperator("its shuffle", EXECUTOR_TIER, parallelism.shuffle_partitions, shuffle_text)


def count_read_tasks(parallelism: Parallelism) -> int:
    """Return the number of tasks of a batch that reads every partition."""
    return sum(parallelism.topic_partitions.values()) or parallelism.shuffle_partitions


def describe_operator(plan: Plan, stage: Stage, parallelism: Parallelism) -> Iterator[PhysicalOperator]:
    """Describe where windows are processed; a downstream stage reads the changes that are in memory."""
    upstream_stages = plan.upstream_of(stage)
    if upstream_stages:
        stage_names = " and ".join(upstream.name for upstream in upstream_stages)
        description = (
            f"processes the changes of {stage_names} in the same batch, without table, topic or shuffle"
        )
        yield PhysicalOperator(f"process {stage.name}", DRIVER_TIER, 1, description)
        return
    takes_single_records, is_ordered = (
        stage.window.is_record_ordered,
        not isinstance(stage.window, JoinWindow),
    )
    payload = (
        ("ordered records" if is_ordered and stage.window.keeps_state else "records")
        if takes_single_records
        else "partials"
    )
    trigger_text = "" if takes_single_records else ", evaluates triggers"
    driver_text = f"fetches {payload} over Arrow, merges them into the state{trigger_text}"
    if not stage.window.keeps_state:
        driver_text = f"fetches {payload} over Arrow and passes them on"
    executor_text = (
        f"above {parallelism.driver_budget_mb} MB: "
        f"{PART_COUNT} parts of the state, by key, after a shuffle of {payload}"
    )
    yield PhysicalOperator(f"process {stage.name}", DRIVER_TIER, 1, driver_text)
    yield PhysicalOperator(
        f"process {stage.name} in parts",
        EXECUTOR_TIER,
        min(parallelism.shuffle_partitions, PART_COUNT),
        executor_text,
    )


def describe_outputs(plan: Plan) -> Iterator[PhysicalOperator]:
    """Describe how results, late records and invalid records are written."""
    count = len(list_owned_paths(plan)) + len(list_quarantine_paths(plan))
    yield PhysicalOperator(
        "single records", EXECUTOR_TIER, 1, "a further job if records are late or invalid: fetches them"
    )
    yield PhysicalOperator(
        "tables", DRIVER_TIER, 1, f"one file and one commit for each of {count} tables with new rows"
    )
    for sink in (sink for stage in plan.stages for sink in stage.sinks if not sink.is_delta_table):
        yield PhysicalOperator(
            f"write {sink.name}", DRIVER_TIER, 1, f"{sink.describe()}, once for each batch"
        )
    for topic in (topic.name for stage in plan.stages for topic in stage.topics):
        yield PhysicalOperator(
            f"publish {topic}", DRIVER_TIER, 1, "sends the panes of a batch in one transaction"
        )
