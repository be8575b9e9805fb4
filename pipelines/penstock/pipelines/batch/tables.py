"""The tables of one stream, written together for each batch."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.host.control import PartitionAccount
from penstock.pipelines.plan.sinks import FinalPanes, PaneLog, Sink
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.tables.columns import TIMESTAMP, as_table, table_schema, timestamps
from penstock.pipelines.tables.log import DataFile, LogTable

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

    panes: pa.Table
    late: pa.Table
    quarantined: pa.Table
    accounts: tuple[PartitionAccount, ...]


class StreamTables:
    """Where one stream writes: panes, late records, the quarantine of its topics, and its ledger."""

    def __init__(self, plan: Plan, stage: ReadyStage, warehouse: Path) -> None:
        self._panes: dict[str, tuple[LogTable, Callable[[pa.Table], pa.Table]]] = {}
        self._all: dict[str, LogTable] = {}
        for sink in stage.plan.sinks:
            folder, choose = _sink(sink)
            name = f"{folder}/{sink.table}"
            self._add(name, table_schema(stage.pane_columns), warehouse, plan.name)
            self._panes[name] = (self._all[name], choose)
        self._late = f"late/{plan.name}"
        self._add(self._late, _with_batch(late_columns(stage)), warehouse, plan.name)
        self._quarantine = f"quarantine/{plan.sources[0].name}"
        self._add(self._quarantine, _with_batch(QUARANTINED), warehouse, plan.name)
        self._ledger = f"ledger/{plan.name}"
        self._add(self._ledger, _with_batch(LEDGER), warehouse, plan.name)

    def write(self, rows: Written, moment: Moment) -> dict[str, list[DataFile]]:
        """Write a batch's rows into files that no table names yet; those of the same batch are replaced."""
        panes = as_table(rows.panes)
        content = {name: choose(panes) for name, (_, choose) in self._panes.items()}
        content[self._late] = _stamped(rows.late, moment)
        content[self._quarantine] = _stamped(rows.quarantined, moment)
        content[self._ledger] = _stamped(_ledger(rows.accounts), moment)
        files = {n: self._all[n].write(table, moment.batch_id, moment.clock) for n, table in content.items()}
        return {name: [file] for name, file in files.items() if file is not None}

    def commit(self, batch_id: int, files: Mapping[str, list[DataFile]]) -> None:
        """Bring a batch's files into their tables, each once."""
        for name, content in files.items():
            self._all[name].commit(batch_id, content)

    def _add(self, name: str, schema: pa.Schema, warehouse: Path, application: str) -> None:
        self._all[name] = LogTable(warehouse / name, schema, application)


def _sink(sink: Sink) -> tuple[str, Callable[[pa.Table], pa.Table]]:
    match sink:
        case PaneLog():
            return "panes", lambda panes: panes
        case FinalPanes():
            return "final", lambda panes: panes.filter(panes.column("final"))
        case _:
            raise DefinitionError(
                "write.mode",
                f"{type(sink).__name__} is not written by Spark yet",
                "Use the mode log or final",
            )


def _with_batch(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, *BATCH])


def _stamped(rows: pa.Table, moment: Moment) -> pa.Table:
    count = rows.num_rows
    clock = timestamps(pa.chunked_array([np.full(count, moment.clock, np.int64)]))
    rows = rows.append_column(BATCH[0], pa.array(np.full(count, moment.batch_id, np.int64)))
    return rows.append_column(BATCH[1], clock)


def _ledger(accounts: tuple[PartitionAccount, ...]) -> pa.Table:
    columns = {name: [getattr(account, name) for account in accounts] for name in LEDGER.names}
    return pa.table(columns, schema=LEDGER)


def panes_by_timing(panes: pa.Table) -> dict[str, int]:
    """How many panes were written of each timing, and how many were taken back."""
    kinds = panes.column("kind").to_pylist()
    names = [
        t if k == "insert" else k for t, k in zip(panes.column("timing").to_pylist(), kinds, strict=True)
    ]
    return dict(Counter(names))
