"""Every shipped pipeline at work at the same time: one session, one broker, one stream each."""

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
from tests.pipelines.engine.spark.bounded_catalog import BEGAN, Record
from tests.pipelines.engine.spark.live_catalog_inputs import MADE, PARTITIONS, counted, end_of, sendings
from tests.pipelines.engine.spark.stream_runner import Running
from tests.pipelines.memory_topics import create_memory_source

from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan import Plan, Stage
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

NAMES = catalog.pipeline_names()
STEPS = (("first",), ("late", "then"), ("close",), ("lost",))
"""What is sent together; a stream has committed it before the next is sent."""
STEP_MS = 4_000
"""Less than a partition may be silent, and enough for first guesses to be told."""


def addresses(topic: str, wanted: str) -> Iterator[tuple[str, int, int]]:
    """Where the records of a phase are in a topic."""
    ends: Counter[int] = Counter()
    for each in sendings(topic):
        if each.phase == wanted:
            yield topic, each.partition, ends[each.partition]
        ends[each.partition] += 1


def watched(name: str) -> Plan:
    """A pipeline with all panes of all its stages written down."""
    plan = catalog.load_plan(name)
    return replace(plan, stages=tuple(map(logged, plan.stages)))


def logged(stage: Stage) -> Stage:
    has = {type(sink) for sink in stage.sinks}
    if PaneLog in has:
        return stage
    wanted = (PaneLog(stage.name), LatestValues(stage.name))
    return replace(stage, sinks=(*stage.sinks, *(sink for sink in wanted if type(sink) not in has)))


def refuses_what_is_late(plan: Plan) -> bool:
    """Whether its windows close; those that count, and functions, take whatever comes."""
    return isinstance(plan.first_source_stage.window, Fixed | Sliding | Sessions | AsOf)


def names_of(plan: Plan) -> list[str]:
    return [source.name for source in plan.sources]


def rows_of(place: StoragePath) -> list[dict[str, Any]]:
    return list(open_delta_table(place).to_pyarrow_table().to_pylist())


def within(plan: Plan, table: pa.Table) -> pa.Table:
    """The rows before those that come when all is over, whose windows nothing closes."""
    end = max(map(end_of, names_of(plan)))
    starts = pc.cast(pc.cast(table.column("window_start"), pa.timestamp("ms", "UTC")), pa.int64())
    return table.filter(pc.fill_null(pc.less(starts, end), True))


class LiveCatalog:
    """The pipelines, each live over the same topics, and what they have written."""

    def __init__(self, session: "SparkSession", broker: LocalBroker, folder: Path) -> None:
        self._session, self._broker, self._folder = session, broker, folder
        self.runs = {
            name: Running(watched(name), session, broker, folder / name, clock=BEGAN + 8_500)
            for name in NAMES
        }

    def run(self) -> None:
        """Send everything, step by step, while all streams run."""
        for topic in MADE:
            self._broker.create_topic(topic, PARTITIONS)
        ensure_topics(self._broker.bootstrap, [load_contract("card-alerts")])
        with ThreadPoolExecutor(len(self.runs)) as each:
            streams = dict(zip(self.runs, each.map(Running.start, self.runs.values()), strict=True))
            try:
                self._run(streams)
            finally:
                list(each.map(lambda stream: stream.drain(), streams.values()))

    def _run(self, streams: "dict[str, LiveStream]") -> None:
        phases: list[str] = []
        for step in STEPS:
            phases += step
            self._send(step)
            for name, run in self.runs.items():
                wanted = sum(len(counted(topic, phases)) for topic in names_of(run.plan))
                run.progress.wait_for(wanted, streams[name])
            streams["card_alerts"].stop()
            streams["card_alerts"] = self.runs["card_alerts"].start()
            for run in self.runs.values():
                run.clock += STEP_MS

    def _send(self, phases: Sequence[str]) -> None:
        producer = Producer({"bootstrap.servers": self._broker.bootstrap, "enable.idempotence": True})
        for topic in MADE:
            for each in (one for one in sendings(topic) if one.phase in phases):
                producer.produce(topic, msgspec.json.encode(each.record), partition=each.partition)
                producer.poll(0)
        assert producer.flush(30) == 0

    def table(self, name: str, path: str) -> pa.Table:
        """A table of a live pipeline, before the end of its topics."""
        run = self.runs[name]
        return within(run.plan, run.table(path))

    def warehouse(self, name: str) -> StoragePath:
        """Where the tables of a pipeline are."""
        return self.runs[name].warehouse

    def lost(self, name: str) -> set[tuple[Any, ...]]:
        """The records that its late tables name."""
        plan, names = self.runs[name].plan, ("topic", "partition", "offset")
        places = [self.warehouse(name) / late_records_path(plan, stage) for stage in plan.source_stages]
        rows = [row for place in places if is_delta_table(place) for row in rows_of(place)]
        return {tuple(row[column] for column in names) for row in rows}

    def accounts(self, name: str) -> list[dict[str, int]]:
        """What became of the records of each partition in each batch, in each stage that read them."""
        plan = self.runs[name].plan
        places = [self.warehouse(name) / stage_ledger_path(plan, stage) for stage in plan.source_stages]
        return [row for place in places if is_delta_table(place) for row in rows_of(place)]

    def bounded(self, name: str, sent: dict[str, list[Record]]) -> Callable[[str], pa.Table]:
        """Run a pipeline over some records to their end, and return where to find its tables."""
        plan, folder = watched(name), self._folder / f"bounded-{name}"
        held = create_memory_source(
            self._session,
            {topic: [msgspec.json.encode(each) for each in records] for topic, records in sent.items()},
        )
        config = BoundedRunConfig(folder / "run", folder / "tables")
        run_bounded(plan, self._session, held, config, lambda: BEGAN)
        return lambda path: within(
            plan, pa.table(open_delta_table(folder / "tables" / path).to_pyarrow_table())
        )
