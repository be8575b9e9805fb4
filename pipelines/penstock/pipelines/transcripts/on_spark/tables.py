"""What a script's tables say, in the words in which cases are compared."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.reference import Instant, LateRow, Pane
from penstock.pipelines.store.files import delta_table

MILLISECOND = 1_000
TIMES = ("window_start", "window_end", "event_time", "watermark", "batch_clock")
Row = Mapping[str, Any]


class Told:
    """The log of panes and the late table of a script, batch by batch."""

    def __init__(self, plan: Plan, stage: ReadyStage, warehouse: Path) -> None:
        self._columns = [each.output for each in stage.accumulators]
        self._key = [field.name for field in stage.key]
        self._source = plan.sources[0].name
        self._panes = by_batch(warehouse / "panes" / plan.stage.sinks[0].table)
        self._late = by_batch(warehouse / "late" / plan.name)

    def panes(self, batch: int) -> tuple[Pane, ...]:
        """Return the panes of a batch; a mark that a window was replaced is none."""
        return tuple(self.pane(row) for row in self._panes[batch] if row["kind"] != "replaced")

    def late(self, batch: int) -> tuple[LateRow, ...]:
        """Return what no window took in a batch."""
        return tuple(self.late_row(row) for row in self._late[batch])

    def pane(self, row: Row) -> Pane:
        """Return a row of the log of panes."""
        return pane_of(row, self._key, self._columns)

    def late_row(self, row: Row) -> LateRow:
        """Return a row of the late table."""
        return LateRow(
            address=(self._source, row["partition"], row["offset"]),
            key=tuple(row[name] for name in self._key),
            time=int(instant(row["event_time"], 0)),
            start=instant(row["window_start"], -inf),
            end=instant(row["window_end"], inf),
            reason=row["reason"],
            watermark=instant(row["watermark"], inf),
            missed_by=row["missed_by_ms"],
            batch=row["batch_id"],
        )


def pane_of(row: Row, key: Iterable[str], columns: Iterable[str]) -> Pane:
    """Return a row of panes, with these columns for its key and its values."""
    return Pane(
        key=tuple(row[name] for name in key),
        start=instant(row["window_start"], -inf),
        end=instant(row["window_end"], inf),
        values=tuple((name, plain(row[name])) for name in columns),
        pane=row["pane"],
        timing=row["timing"],
        on_time_index=row["on_time_index"],
        final=row["final"],
        kind=row["kind"],
        records=row["records"],
        batch=row["batch_id"],
        clock=int(instant(row["batch_clock"], 0)),
        watermark=instant(row["watermark"], inf),
        number=row.get("window_number"),
    )


def by_batch(table: Path) -> Mapping[int, list[Row]]:
    """Read a whole table."""
    rows: dict[int, list[Row]] = defaultdict(list)
    for row in rows_of(delta_table(table).to_pyarrow_table()):
        rows[row["batch_id"]].append(row)
    return rows


def rows_of(table: pa.Table) -> Iterable[Row]:
    """Return the rows of a table, with their own times in microseconds: Python's end with the year 9999."""
    for name in TIMES:
        at = table.schema.get_field_index(name)
        if at >= 0:
            table = table.set_column(at, name, table.column(at).cast(pa.int64()))
    rows: list[Row] = table.to_pylist()
    return rows


def instant(moment: int | None, endless: Instant) -> Instant:
    """Return a time in milliseconds; one that a table cannot show is an end of time."""
    return endless if moment is None else moment // MILLISECOND


def plain(value: Any) -> Any:
    """Return a value that can be compared: a list as a tuple."""
    return tuple(value) if isinstance(value, list) else value
