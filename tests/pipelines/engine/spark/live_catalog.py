"""Runs every shipped pipeline at the same time: one session, one broker, one stream each."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Producer
from tests.patience import PATIENCE_S
from tests.pipelines.engine.spark.bounded_catalog import START_MS, Record
from tests.pipelines.engine.spark.live_catalog_inputs import (
    GENERATORS,
    PARTITIONS,
    find_end_ms,
    list_phase_records,
    list_sent_records,
)
from tests.pipelines.engine.spark.stream_runner import StreamRunner
from tests.pipelines.memory_topics import create_memory_source

from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.table_paths import late_records_path, stage_ledger_path
from penstock.engine.windows.as_of import AsOf
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.topics import ensure_topics
from penstock.pipelines import catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engine.spark.live_stream import LiveStream

PIPELINES = catalog.pipeline_names()
PHASE_GROUPS = (("first",), ("late", "then"), ("close",), ("lost",))
"""The phases that are sent together. Every stream commits a group before the next is sent."""
CLOCK_STEP_MS = 4_000
"""Shorter than the idle time of a partition, and long enough for early panes."""


def list_addresses(topic: str, wanted: str) -> Iterator[tuple[str, int, int]]:
    """List the topic, partition and offset of each record of a phase."""
    ends: Counter[int] = Counter()
    for sent in list_sent_records(topic):
        if sent.phase == wanted:
            yield topic, sent.partition, ends[sent.partition]
        ends[sent.partition] += 1


def load_plan_with_all_panes(name: str) -> Plan:
    """Load a pipeline and add a pane log to all its stages."""
    plan = catalog.load_plan(name)
    return replace(plan, stages=tuple(map(add_pane_log, plan.stages)))


def add_pane_log(stage: Stage) -> Stage:
    has = {type(sink) for sink in stage.sinks}
    if PaneLog in has:
        return stage
    wanted = (PaneLog(stage.name), LatestValues(stage.name))
    return replace(stage, sinks=(*stage.sinks, *(sink for sink in wanted if type(sink) not in has)))


def drops_late_records(plan: Plan) -> bool:
    """Return whether the windows of a plan close; count windows and functions take every record."""
    return isinstance(plan.first_source_stage.window, Fixed | Sliding | Sessions | AsOf)


def list_topics(plan: Plan) -> list[str]:
    return [source.name for source in plan.sources]


def read_rows(path: StoragePath) -> list[dict[str, Any]]:
    return list(open_delta_table(path).to_pyarrow_table().to_pylist())


def drop_closing_rows(plan: Plan, table: pa.Table) -> pa.Table:
    """Drop the rows of closing records, whose windows never close."""
    end = max(map(find_end_ms, list_topics(plan)))
    starts = pc.cast(pc.cast(table.column("window_start"), pa.timestamp("ms", "UTC")), pa.int64())
    return table.filter(pc.fill_null(pc.less(starts, end), True))


class LiveCatalog:
    """All pipelines, live over the same topics, and their tables."""

    def __init__(self, session: "SparkSession", broker: LocalBroker, folder: Path) -> None:
        self._session, self._broker, self._folder = session, broker, folder
        self.runners = {
            name: StreamRunner(
                load_plan_with_all_panes(name), session, broker, folder / name, clock=START_MS + 8_500
            )
            for name in PIPELINES
        }

    def run(self) -> None:
        """Send all records, one group of phases after the other, while all streams run."""
        for topic in GENERATORS:
            self._broker.create_topic(topic, PARTITIONS)
        ensure_topics(self._broker.bootstrap, [load_contract("card-alerts")])
        with ThreadPoolExecutor(len(self.runners)) as pool:
            streams = dict(
                zip(self.runners, pool.map(StreamRunner.start, self.runners.values()), strict=True)
            )
            try:
                self._run(streams)
            finally:
                list(pool.map(lambda stream: stream.drain(), streams.values()))

    def _run(self, streams: "dict[str, LiveStream]") -> None:
        phases: list[str] = []
        for step in PHASE_GROUPS:
            phases += step
            self._send(step)
            for name, runner in self.runners.items():
                wanted = sum(len(list_phase_records(topic, phases)) for topic in list_topics(runner.plan))
                runner.progress.wait_for(wanted, streams[name])
            streams["card_alerts"].stop()
            streams["card_alerts"] = self.runners["card_alerts"].start()
            for runner in self.runners.values():
                runner.clock += CLOCK_STEP_MS

    def _send(self, phases: Sequence[str]) -> None:
        producer = Producer({"bootstrap.servers": self._broker.bootstrap, "enable.idempotence": True})
        for topic in GENERATORS:
            for sent in (each for each in list_sent_records(topic) if each.phase in phases):
                producer.produce(topic, msgspec.json.encode(sent.record), partition=sent.partition)
                producer.poll(0)
        assert producer.flush(PATIENCE_S) == 0

    def table(self, name: str, path: str) -> pa.Table:
        """Read a table of a live pipeline without the rows of closing records."""
        runner = self.runners[name]
        return drop_closing_rows(runner.plan, runner.table(path))

    def warehouse(self, name: str) -> StoragePath:
        """Return the warehouse of a pipeline."""
        return self.runners[name].warehouse

    def list_late_addresses(self, name: str) -> set[tuple[Any, ...]]:
        """List the addresses of the records in the late tables of a pipeline."""
        plan, names = self.runners[name].plan, ("topic", "partition", "offset")
        paths = [self.warehouse(name) / late_records_path(plan, stage) for stage in plan.source_stages]
        rows = [row for path in paths if is_delta_table(path) for row in read_rows(path)]
        return {tuple(row[column] for column in names) for row in rows}

    def read_ledger(self, name: str) -> list[dict[str, int]]:
        """Read the stream ledger of every source stage of a pipeline."""
        plan = self.runners[name].plan
        paths = [self.warehouse(name) / stage_ledger_path(plan, stage) for stage in plan.source_stages]
        return [row for path in paths if is_delta_table(path) for row in read_rows(path)]

    def run_bounded(self, name: str, sent: dict[str, list[Record]]) -> Callable[[str], pa.Table]:
        """Run a pipeline over some records to their end; return a function that reads its tables."""
        plan, folder = load_plan_with_all_panes(name), self._folder / f"bounded-{name}"
        source = create_memory_source(
            self._session,
            {topic: [msgspec.json.encode(record) for record in records] for topic, records in sent.items()},
        )
        config = BoundedRunConfig(folder / "run", folder / "tables")
        run_bounded(plan, self._session, source, config, lambda: START_MS)
        return lambda path: drop_closing_rows(
            plan, pa.table(open_delta_table(folder / "tables" / path).to_pyarrow_table())
        )
