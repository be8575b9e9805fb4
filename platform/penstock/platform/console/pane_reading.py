"""Reads what the pane diagram of a running stream shows: its panes, late and invalid records of some minutes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa
import pyarrow.dataset as ds

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.diagrams import StageRunData
from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.columns import stage_value_columns
from penstock.engine.plan.sinks import PaneContent, Sink
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.timestamp_clamping import clamp_timestamps

PaneSource = Literal["every pane", "newest pane of each window"]
EventRecord = tuple[int, int, Mapping[str, Any]]
"""Event time, arrival and fields of a record."""

MAX_PANE_ROWS = 20_000
_ROW_COLUMNS = ("window_start", "window_end", "timing", "kind", "batch_clock")


@dataclass(frozen=True)
class PaneReading:
    """The data of a stage in an interval of processing time, and what else the diagram shows."""

    run_data: StageRunData
    sink: Sink
    source: PaneSource
    retractions: Sequence[Mapping[str, Any]]
    invalid_clocks: Sequence[int]
    is_cut_off: bool
    """Whether there were more than MAX_PANE_ROWS rows; the oldest are left out."""


def list_drawn_stages(plan: Plan) -> list[Stage]:
    """Return the stages with a table of panes or of latest values, which a diagram can show."""
    return [stage for stage in plan.stages if find_pane_sink(stage) is not None]


def find_pane_sink(stage: Stage) -> Sink | None:
    """Return the table that has the panes of a stage: the log of all panes, otherwise that of latest values."""
    tables = [sink for sink in stage.sinks if sink.is_delta_table and sink.output is None]
    for content in (PaneContent.ALL, PaneContent.LATEST):
        for sink in tables:
            if sink.content is content:
                return sink
    return None


def read_panes(
    warehouse: StoragePath,
    plan: Plan,
    stage: Stage,
    batches: Sequence[BatchRecord],
    interval: tuple[int, int],
    records: Sequence[EventRecord],
) -> PaneReading | None:
    """Return the panes that a stage wrote in an interval; None if it has no table for them yet."""
    sink = find_pane_sink(stage)
    if sink is None or not is_delta_table(warehouse / sink.path):
        return None
    wanted = {*stage.key, *stage_value_columns(stage), *_ROW_COLUMNS}
    rows = _read_since(warehouse / sink.path, "batch_clock", interval[0], wanted)
    newest = rows[-MAX_PANE_ROWS:]
    has_log = sink.content is PaneContent.ALL
    panes = [row if has_log else {**row, "kind": "insert"} for row in newest]
    is_result = stage.name == plan.name
    late = _read_since(warehouse / "late" / plan.name, "batch_clock", interval[0]) if is_result else []
    run_data = StageRunData(
        stage=stage,
        window=plan.window_of(stage),
        pane_rows=panes,
        late_rows=late,
        records=records,
        watermark=_list_watermarks(batches, interval[1]),
        started=interval[0],
        ended=interval[1],
    )
    retractions = [row for row in panes if row["kind"] == "retract"]
    source: PaneSource = "every pane" if has_log else "newest pane of each window"
    return PaneReading(
        run_data,
        sink,
        source,
        retractions,
        list(_iter_invalid_clocks(warehouse, plan, interval[0])),
        len(rows) > len(newest),
    )


def _list_watermarks(batches: Sequence[BatchRecord], now_ms: int) -> list[tuple[int, int]]:
    """Return each watermark with the clock of its batch, and the last one as it still holds now."""
    marks = [
        (batch.watermark_ms, batch.clock_ms)
        for batch in batches
        if batch.watermark_ms is not None and batch.watermark_ms > MIN_TIMESTAMP_MS
    ]
    bounded = [(min(watermark, MAX_TIMESTAMP_MS), clock) for watermark, clock in marks]
    return [*bounded, (bounded[-1][0], now_ms)] if bounded else []


def _iter_invalid_clocks(warehouse: StoragePath, plan: Plan, since_ms: int) -> Iterator[int]:
    for topic in {topic_of(source) for source in plan.sources}:
        for row in _read_since(warehouse / "quarantine" / topic, "batch_clock", since_ms, {"batch_clock"}):
            yield round(row["batch_clock"].timestamp() * 1000)


def _read_since(
    table: StoragePath, column: str, since_ms: int, columns: set[str] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a table since a time, in the order of that column; none if there is no table."""
    if not is_delta_table(table):
        return []
    dataset = open_delta_table(table).to_pyarrow_dataset()
    since = datetime.fromtimestamp(since_ms / 1000, UTC)
    names = [name for name in dataset.schema.names if columns is None or name in columns]
    rows: pa.Table = dataset.to_table(columns=names, filter=ds.field(column) >= since)
    ordered: list[dict[str, Any]] = clamp_timestamps(rows.sort_by(column)).to_pylist()
    return ordered
