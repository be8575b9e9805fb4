"""Reads the tables of a script in the form in which cases are compared."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.conformance.reference import Instant, LateRow, Pane
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.plan.stages import Plan
from penstock.engine.storage.file_access import open_delta_table

MICROSECONDS_PER_MS = 1_000
TIME_COLUMNS = (
    *("window_start", "window_end", "replaced_by_start", "replaced_by_end"),
    *("event_time", "watermark", "batch_clock"),
)
TableRow = Mapping[str, Any]


class ScriptTables:
    """The pane log and the late table of a script, batch by batch."""

    def __init__(self, plan: Plan, stage: CompiledStage, warehouse: Path) -> None:
        self._columns = [accumulator.output for accumulator in stage.accumulators]
        self._key = [field.name for field in stage.key]
        self._source = plan.sources[0].name
        self._panes = read_rows_by_batch(warehouse / plan.only_stage.sinks[0].path)
        self._late = read_rows_by_batch(warehouse / "late" / plan.name)

    def panes_of(self, batch: int) -> tuple[Pane, ...]:
        """Return the panes of a batch, without markers of replaced windows."""
        return tuple(self.build_pane(row) for row in self._panes[batch] if row["kind"] != "replaced")

    def late_rows_of(self, batch: int) -> tuple[LateRow, ...]:
        """Return the late rows of a batch."""
        return tuple(self.build_late_row(row) for row in self._late[batch])

    def build_pane(self, row: TableRow) -> Pane:
        """Return a row of the pane log as a pane."""
        return pane_from_row(row, self._key, self._columns)

    def build_late_row(self, row: TableRow) -> LateRow:
        """Return a row of the late table."""
        return late_row_from_row(row, self._source, self._key)


def late_row_from_row(row: TableRow, source: str, key: Iterable[str]) -> LateRow:
    """Return a row of a late table, with the given key columns."""
    return LateRow(
        address=(source, row["partition"], row["offset"]),
        key=tuple(row[name] for name in key),
        time=int(to_instant(row["event_time"], 0)),
        start=to_instant(row["window_start"], -inf),
        end=to_instant(row["window_end"], inf),
        reason=row["reason"],
        watermark=to_instant(row["watermark"], inf),
        missed_by=row["missed_by_ms"],
        batch=row["batch_id"],
    )


def pane_from_row(row: TableRow, key: Iterable[str], columns: Iterable[str]) -> Pane:
    """Return a row as a pane, with the given key and value columns."""
    return Pane(
        key=tuple(row[name] for name in key),
        start=to_instant(row["window_start"], -inf),
        end=to_instant(row["window_end"], inf),
        values=tuple((name, to_comparable(row[name])) for name in columns),
        pane_index=row["pane"],
        timing=row["timing"],
        on_time_index=row["on_time_index"],
        final=row["final"],
        kind=row["kind"],
        records=row["records"],
        batch=row["batch_id"],
        clock=int(to_instant(row["batch_clock"], 0)),
        watermark=to_instant(row["watermark"], inf),
        window_number=row.get("window_number"),
    )


def read_rows_by_batch(table: Path) -> Mapping[int, list[TableRow]]:
    """Read a whole table."""
    rows: dict[int, list[TableRow]] = defaultdict(list)
    for row in to_rows(open_delta_table(table).to_pyarrow_table()):
        rows[row["batch_id"]].append(row)
    return rows


def to_rows(table: pa.Table) -> Iterable[TableRow]:
    """Return the rows of a table with times in microseconds; Python's datetime ends at year 9999."""
    for name in TIME_COLUMNS:
        column_index = table.schema.get_field_index(name)
        if column_index >= 0:
            table = table.set_column(column_index, name, table.column(column_index).cast(pa.int64()))
    rows: list[TableRow] = table.to_pylist()
    return rows


def to_instant(time_us: int | None, infinite: Instant) -> Instant:
    """Return a time in milliseconds; a time that a table cannot represent is infinite."""
    return infinite if time_us is None else time_us // MICROSECONDS_PER_MS


def to_comparable(value: Any) -> Any:
    """Return a comparable value: a list as a tuple."""
    return tuple(value) if isinstance(value, list) else value
