"""One demonstration: feed the topics, run the pipeline in batches of simulated time, and collect the results."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.core.kafka_client import BrokerAccess
from penstock.core.names import explain_unknown_name
from penstock.core.progress import ProgressReporter
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.diagrams import StageRunData
from penstock.engine.history.bounded_run import BoundedRun
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.sinks import PaneContent, Sink
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.spark.bounded_sources.memory_source import InMemorySource
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.spark.bounded_sources.union_source import UnionSource
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.timestamp_clamping import clamp_timestamps
from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.topics import describe_topics, ensure_topics
from penstock.pipelines.catalog import load_demo
from penstock.pipelines.demonstration import Demo
from penstock.platform.demo.delivery import DemoDelivery, PartitionKey, deliver_records
from penstock.platform.demo.table_checks import TableCheck, check_demo_tables
from penstock.platform.demo.timed_records import TimedRecord, build_timed_records
from penstock.platform.errors import DemoError
from penstock.platform.services.future_skew import remove_skew_limits
from penstock.platform.services.stream_catalog import load_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class DemoResult:
    """The result of a demonstration: the data of its page and its diagram."""

    plan: Plan
    demo: Demo
    run_data: StageRunData
    warehouse: Path
    outcomes: Sequence[BatchOutcome]
    table_checks: Sequence[TableCheck]

    @property
    def result_table(self) -> DeltaTable:
        """The result table: the one of latest values if there is one."""
        tables = [sink for sink in self.run_data.stage.sinks if sink.is_delta_table]
        latest = [sink for sink in tables if sink.content is PaneContent.LATEST]
        return open_delta_table(self.warehouse / [*latest, *tables][0].path)


def run_demo(
    name: str, session: "SparkSession", bootstrap: str, folder: Path, report_progress: ProgressReporter
) -> DemoResult:
    """Feed and run a pipeline of the catalog. Deletes the former content of the folder."""
    return run_demo_plan(
        remove_skew_limits(load_plan(name)), load_demo(name), session, bootstrap, folder, report_progress
    )


def run_demo_plan(
    plan: Plan,
    demo: Demo,
    session: "SparkSession",
    bootstrap: str,
    folder: Path,
    report_progress: ProgressReporter,
) -> DemoResult:
    """Feed and run a plan. Deletes the former content of the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    stage_name = demo.stage or plan.name
    plan = add_pane_log(plan, stage_name)
    contracts = [load_contract(topic_of(source)) for source in plan.sources]
    records_by_topic = {
        each.topic: build_timed_records(each.topic, demo, len(contracts)) for each in contracts
    }
    delivery = feed_topics(bootstrap, contracts, records_by_topic, folder, report_progress)
    report_progress("reading the topics")
    memory_source = load_delivered_records(session, bootstrap, delivery)
    outcomes: list[BatchOutcome] = []
    config = BoundedRunConfig(folder / "stream", folder / "warehouse")
    bounded_run = BoundedRun(plan, session, config, outcomes.append)
    send_times = [record.sent_at_ms for each in records_by_topic.values() for record in each]
    start_ms = min(send_times) - min(send_times) % demo.step_ms
    end_ms = run_batches(
        bounded_run,
        delivery,
        memory_source,
        range(start_ms, max(send_times) + 1, demo.step_ms),
        report_progress,
    )
    memory_source.rows.unpersist()
    stage = next(stage for stage in plan.stages if stage.name == stage_name)
    run_data = StageRunData(
        stage=stage,
        window=plan.window_of(stage),
        pane_rows=read_table_rows(folder / "warehouse" / find_pane_log(stage).path),
        late_rows=read_table_rows(folder / "warehouse" / "late" / plan.name)
        if stage_name == plan.name
        else [],
        records=[
            record
            for contract in contracts
            for record in list_event_records(contract, records_by_topic[contract.topic])
        ],
        watermark=[
            (each.watermark.value, each.clock)
            for each in outcomes
            if MIN_TIMESTAMP_MS < each.watermark.value < MAX_TIMESTAMP_MS
        ],
        started=start_ms,
        ended=end_ms,
    )
    report_progress("checking the tables")
    table_checks = tuple(check_demo_tables(session, plan, folder / "warehouse"))
    return DemoResult(plan, demo, run_data, folder / "warehouse", outcomes, table_checks)


def run_batches(
    bounded_run: BoundedRun,
    delivery: DemoDelivery,
    source: InMemorySource,
    steps: range,
    report_progress: ProgressReporter,
) -> int:
    """Run a batch for each step of simulated time, and one that ends the input; return the time of the last one."""
    for number, step_start_ms in enumerate(steps):
        report_progress(f"batch {number + 1} of {len(steps)}")
        clock_ms = step_start_ms + steps.step
        ranges = delivery.offset_ranges(step_start_ms, clock_ms)
        if any(offset_range.end > offset_range.start for offset_range in ranges):
            bounded_run.run_batch(number, clock_ms, ranges, source, None, {})
        else:
            bounded_run.run_tick(clock_ms)
    end_ms = steps[-1] + 2 * steps.step
    bounded_run.run_tick(end_ms, MAX_TIMESTAMP_MS)
    return end_ms


def add_pane_log(plan: Plan, stage_name: str) -> Plan:
    """Return the plan with a pane log for a stage, which the diagram needs."""
    shown_stages = [stage for stage in plan.stages if stage.name == stage_name]
    if not shown_stages:
        stage_names = [stage.name for stage in plan.stages]
        raise DemoError(explain_unknown_name(f"{plan.name} stage", stage_name, stage_names))
    stages = tuple(
        replace(stage, sinks=(*stage.sinks, PaneLog(stage.name)))
        if stage in shown_stages and not any(map(is_pane_log, stage.sinks))
        else stage
        for stage in plan.stages
    )
    return replace(plan, stages=stages)


def is_pane_log(sink: Sink) -> bool:
    """Tell whether a sink is a table of every pane of the main output."""
    return sink.is_delta_table and sink.content is PaneContent.ALL and sink.output is None


def find_pane_log(stage: Stage) -> Sink:
    """Return the pane log of a stage."""
    return next(filter(is_pane_log, stage.sinks))


def feed_topics(
    bootstrap: str,
    contracts: Sequence[Contract],
    records_by_topic: dict[str, Sequence[TimedRecord]],
    folder: Path,
    report_progress: ProgressReporter,
) -> DemoDelivery:
    """Create the topics and send the records of each."""
    ensure_topics(bootstrap, contracts)
    send_times: dict[PartitionKey, list[int]] = {}
    start_offsets = {
        (topic.name, partition.partition): partition.end_offset
        for topic in describe_topics(bootstrap)
        for partition in topic.partitions
    }
    for contract in contracts:
        topic_offsets = {
            partition_key: end
            for partition_key, end in start_offsets.items()
            if partition_key[0] == contract.topic
        }
        ledger = folder / "producers" / contract.topic
        send_times |= deliver_records(
            bootstrap, contract, records_by_topic[contract.topic], topic_offsets, ledger, report_progress
        )
    return DemoDelivery(send_times, start_offsets)


def load_delivered_records(session: "SparkSession", bootstrap: str, delivery: DemoDelivery) -> InMemorySource:
    """Read the delivered records into memory."""
    topics = sorted({topic for topic, _ in delivery.send_times})
    ranges = delivery.offset_ranges(0, MAX_TIMESTAMP_MS)
    union_source = UnionSource([TopicSource(session, topic, BrokerAccess(bootstrap)) for topic in topics])
    return InMemorySource(union_source.read_records(ranges).cache(), ranges)


def list_event_records(
    contract: Contract, timed_records: Sequence[TimedRecord]
) -> list[tuple[int, int, dict[str, object]]]:
    """Return each record with its event time and its send time."""
    time_field = contract.event_time or ""
    fields_and_times = [
        (msgspec.to_builtins(sending.record), sending.sent_at_ms) for sending in timed_records
    ]
    return [(fields[time_field], sent_at_ms, fields) for fields, sent_at_ms in fields_and_times]


def read_table_rows(table: Path) -> list[dict[str, object]]:
    """Return the rows of a table in batch order; an empty list if the table does not exist."""
    if not is_delta_table(table):
        return []
    table_rows = open_delta_table(table).to_pyarrow_table()
    sort_order = pc.sort_indices(table_rows, [("batch_id", "ascending")])
    ordered: list[dict[str, object]] = clamp_timestamps(table_rows.take(sort_order)).to_pylist()
    return ordered
