"""The tables of one stream, written together for each batch."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.lookups import SEEN
from penstock.pipelines.batch.reading import CHECKED
from penstock.pipelines.erasure.account import ERASURES
from penstock.pipelines.erasure.account import FOLDER as ERASED
from penstock.pipelines.fold.graph import ReadyGraph
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.order.slots import NUMBER
from penstock.pipelines.fold.outputs import columns_of, panes_of
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.host.control import PartitionAccount
from penstock.pipelines.plan.codec import contract_version
from penstock.pipelines.plan.sinks import CompleteTable, FinalPanes, LatestValues, PaneLog, Sink
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.plan.windows import Fixed, Global, Sliding, Window
from penstock.pipelines.store import Place
from penstock.pipelines.tables.change import Change
from penstock.pipelines.tables.columns import TIMESTAMP, as_table, table_schema, timestamps
from penstock.pipelines.tables.complete import CompleteTable as WholeTable
from penstock.pipelines.tables.latest import LatestTable, latest_schema
from penstock.pipelines.tables.log import LogTable
from penstock.pipelines.tables.places import LOOKUPS, late_of, ledger_of, result_of
from penstock.pipelines.tables.table import BatchTable
from penstock.pipelines.tables.topic import topics_of

HOUR_US = 3_600_000_000
COMMITS_AT_ONCE = 4
BATCH = (pa.field("batch_id", pa.int64()), pa.field("batch_clock", TIMESTAMP))
ADDRESS = (
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
)
QUARANTINED = pa.schema(
    [
        *ADDRESS,
        pa.field("arrived", TIMESTAMP),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("reason", pa.string()),
    ]
)
"""A record that is no good: where it is, what it is, byte for byte, and why."""

QUARANTINE = pa.schema([*QUARANTINED, pa.field("stream", pa.string()), pa.field("contract", pa.string())])
"""The same in the table of its topic, which several streams may write: which of them judged it, and by what."""

LEDGER = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        *(pa.field(name, pa.int64()) for name in ("start", "end", "read", "folded", "late", "quarantined")),
        *(pa.field(name, pa.int64()) for name in ("duplicate", "filtered")),
    ]
)
"""What became of the records that a batch read from a partition, offsets [start, end)."""


def late_columns(stage: ReadyStage) -> pa.Schema:
    """A record that came too late for a window: its address, the window, and by how much it missed."""
    return pa.schema(
        [
            *ADDRESS,
            *stage.key,
            pa.field("event_time", TIMESTAMP),
            pa.field("window_start", TIMESTAMP),
            pa.field("window_end", TIMESTAMP),
            pa.field("watermark", TIMESTAMP),
            pa.field("missed_by_ms", pa.int64()),
            pa.field("reason", pa.string()),
            pa.field("record", pa.string()),
        ]
    )


@dataclass(frozen=True)
class Written:
    """What a batch has to say to its tables. Tables without a row are left out."""

    panes: Mapping[str, pa.Table]
    """The panes of each stage."""
    late: Mapping[str, pa.Table]
    """The records that each first stage refused."""
    quarantined: pa.Table
    accounts: tuple[PartitionAccount, ...]
    """What became of the records of each partition, in the first of the stages that read it."""
    beside: Mapping[str, tuple[PartitionAccount, ...]] = field(default_factory=dict)
    """The same in other first stages that read records of these partitions as well."""
    broken: pa.Table = field(default_factory=CHECKED.empty_table)
    lookups: pa.Table = field(default_factory=SEEN.empty_table)
    published: Mapping[str, pa.Table] = field(default_factory=dict)
    """What goes to topics, of each stage that has any."""


class Tables(Protocol):
    """Where an engine writes what a batch has to say."""

    def write(self, rows: Written, moment: Moment) -> dict[str, Change]:
        """Keep a batch's rows where nobody sees them yet, and return what makes them seen."""

    def discard(self, changes: Mapping[str, Change]) -> None:
        """Let go of what was kept, of a batch that failed before it was decided."""

    def commit(self, batch_id: int, changes: Mapping[str, Change], clock: int) -> None:
        """Make a batch's changes, each once."""


class StreamTables:
    """Where one stream writes: panes, late records, the quarantine of its topics, and its ledger."""

    def __init__(
        self, plan: Plan, graph: ReadyGraph, warehouse: Place, clients: Mapping[str, str] | None = None
    ) -> None:
        """Without `clients` of Kafka nothing is published: a run over stored records tells no topic."""
        self._sinks = {
            path: (stage.plan.name, *_sink(sink, stage, warehouse / path, plan.name))
            for stage in graph.stages
            for path, sink in sinks(stage)
        }

        def log(path: str, schema: pa.Schema) -> tuple[str, LogTable]:
            return path, LogTable(warehouse / path, _with_batch(schema), plan.name)

        self._late = {
            stage.plan.name: log(late_of(plan, stage.plan), late_columns(stage)) for stage in graph.firsts
        }
        self._quarantines = {
            topic_of(source): log(f"quarantine/{source.name}", QUARANTINE) for source in plan.sources
        }
        self._judged_by = {topic_of(source): (plan.name, contract_version(source)) for source in plan.sources}
        self._ledgers = {stage.plan.name: log(ledger_of(plan, stage.plan), LEDGER) for stage in graph.firsts}
        self._ledger = self._ledgers[plan.first.name]
        self._checks = log(f"checks/{plan.name}", CHECKED) if any(s.checks for s in plan.sources) else None
        self._lookups = log(f"{LOOKUPS}/{plan.name}", SEEN) if plan.lookups else None
        self._all: dict[str, BatchTable] = dict(
            [*self._late.values(), *self._quarantines.values(), *self._ledgers.values()]
        )
        self._all |= {path: table for path, (_, table, _) in self._sinks.items()}
        self._all |= dict(each for each in (self._checks, self._lookups) if each)
        self._pool = ThreadPoolExecutor(COMMITS_AT_ONCE, thread_name_prefix=f"commits of {plan.name}")
        self._topics = {} if clients is None else dict(topics_of(plan, warehouse, clients))
        self._erasures = f"{ERASED}/{plan.name}"
        self._account = partial(LogTable, warehouse / self._erasures, ERASURES, plan.name)

    def write(self, rows: Written, moment: Moment) -> dict[str, Change]:
        """Write a batch's rows into files that no table names yet, and nobody else writes."""
        panes = {stage: as_table(table) for stage, table in rows.panes.items()}
        records = {
            **{self._late[stage]: _stamped(late, moment) for stage, late in rows.late.items()},
            **self._bad(_stamped(rows.quarantined, moment)),
            self._ledger: _stamped(_ledger(rows.accounts), moment),
            **{self._ledgers[stage]: _stamped(_ledger(rest), moment) for stage, rest in rows.beside.items()},
            **({self._checks: _stamped(rows.broken, moment)} if self._checks else {}),
            **({self._lookups: _stamped(rows.lookups, moment)} if self._lookups else {}),
        }
        number, clock = moment.batch_id, moment.clock
        changes: dict[str, Change] = {}
        try:
            for path, (stage, table, choose) in self._sinks.items():
                changes[path] = table.write(choose(panes[stage]), number, clock)
            for (path, log), content in records.items():
                changes[path] = log.write(content, number, clock)
            for path, topic in self._topics.items():
                changes[path] = topic.write(rows.published[topic.stage], number, clock)
        except Exception:
            self.discard(changes)
            raise
        return {path: change for path, change in changes.items() if not change.is_none}

    def discard(self, changes: Mapping[str, Change]) -> None:
        """Remove what an attempt wrote that failed before its batch was decided."""
        for path, change in changes.items():
            place = self._topics[path] if path in self._topics else self._all[path]
            place.discard(change.adds)

    def _bad(self, rows: pa.Table) -> dict[tuple[str, LogTable], pa.Table]:
        """Records that are no good, for the quarantine of each topic."""
        return {
            table: _judged(rows.filter(pc.equal(rows.column("topic"), topic)), *self._judged_by[topic])
            for topic, table in self._quarantines.items()
        }

    def commit(self, batch_id: int, changes: Mapping[str, Change], clock: int) -> None:
        """Make a batch's changes to its tables, each once, side by side: a commit is mostly waiting for files.

        Where some cannot be made, the others are, and the first that failed raises.
        """

        def make(path: str, change: Change) -> None:
            if path in self._all:  # a table that is no longer declared stays as it is
                self._all[path].commit(batch_id, change, clock)
            elif path in self._topics:
                self._topics[path].commit(batch_id, change, clock)
            elif path == self._erasures:  # there is none before a key is erased
                self._account().commit(batch_id, change, clock)

        made = [self._pool.submit(make, path, change) for path, change in changes.items()]
        wait(made)
        for each in made:
            each.result()
        for path in changes.keys() & self._all.keys():
            self._pool.submit(self._all[path].look_ahead)


def sinks(stage: ReadyStage) -> list[tuple[str, Sink]]:
    """Where each sink's table is, below the warehouse."""
    return [(result_of(sink), sink) for sink in stage.plan.sinks]


def _sink(
    sink: Sink, stage: ReadyStage, path: Place, application: str
) -> tuple[LogTable | LatestTable, Callable[[pa.Table], pa.Table]]:
    schema = table_schema(stage.pane_columns)
    match sink:
        case PaneLog(output=output):
            columns = table_schema(columns_of(stage, output))
            return LogTable(path, columns, application), partial(_of_output, stage, output)
        case FinalPanes():
            return LogTable(path, schema, application), _final_only
        case LatestValues():
            span = _span_us(stage.plan.window)
            return LatestTable(path, latest_schema(schema), application, _names(stage), span), _all_of_them
        case CompleteTable():
            return WholeTable(path, latest_schema(schema), application, _names(stage)), _all_of_them


def _names(stage: ReadyStage) -> list[str]:
    """The columns that tell windows apart, beside their bounds."""
    return [field.name for field in (*stage.key, *((NUMBER,) if stage.numbered else ()))]


def _all_of_them(panes: pa.Table) -> pa.Table:
    return panes


def _of_output(stage: ReadyStage, output: str | None, panes: pa.Table) -> pa.Table:
    return panes_of(stage, panes, output)


def _final_only(panes: pa.Table) -> pa.Table:
    inserted = pc.equal(panes.column("kind"), "insert")  # nothing is taken back of what was not written
    return panes.filter(pc.and_(panes.column("final"), inserted))


def _span_us(window: Window) -> int | None:
    """How far windows lie together in a file of a table of newest values."""
    match window:
        case Fixed(size=size):
            return size * 1000
        case Sliding(period=period):
            return period * 1000
        case Global():
            return None
        case _:
            return HOUR_US


def _with_batch(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, *BATCH])


def _stamped(rows: pa.Table, moment: Moment) -> pa.Table:
    count = rows.num_rows
    clock = timestamps(pa.chunked_array([np.full(count, moment.clock, np.int64)]))
    rows = rows.append_column(BATCH[0], pa.array(np.full(count, moment.batch_id, np.int64)))
    return rows.append_column(BATCH[1], clock)


def _judged(rows: pa.Table, stream: str, contract: str) -> pa.Table:
    """Rows for the quarantine of one topic, in the order of its columns."""
    for name, word in (("stream", stream), ("contract", contract)):
        rows = rows.append_column(name, pa.array([word] * rows.num_rows, pa.string()))
    return rows.select(_with_batch(QUARANTINE).names)


def _ledger(accounts: tuple[PartitionAccount, ...]) -> pa.Table:
    columns = {name: [getattr(account, name) for account in accounts] for name in LEDGER.names}
    return pa.table(columns, schema=LEDGER)


def panes_by_timing(panes: Iterable[pa.Table]) -> dict[str, int]:
    """How many panes there are of each timing, and how many were taken back, over all stages."""
    count: Counter[str] = Counter()
    for table in panes:
        for told in table.group_by(["timing", "kind"]).aggregate([([], "count_all")]).to_pylist():
            count[told["timing"] if told["kind"] == "insert" else told["kind"]] += told["count_all"]
    return dict(count)
