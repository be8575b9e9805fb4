"""Reads the recent rows of a table. File statistics decide which files to read."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.engine.storage import StoragePath
from penstock.quality.statistics.series import StatisticsPoint
from penstock.quality.table_reads import open_table, to_milliseconds


@dataclass(frozen=True)
class RecentIntervals:
    """The last `count` intervals before a time."""

    every_ms: int
    count: int
    until_ms: int

    @property
    def start_ms(self) -> int:
        """The start of the first interval."""
        return (self.until_ms // self.every_ms - self.count) * self.every_ms


def read_last_points(
    path: StoragePath,
    column: str,
    intervals: RecentIntervals,
    compute_points: Callable[[pa.Table], list[StatisticsPoint]],
) -> list[StatisticsPoint]:
    """Return the points of the last intervals that have rows.

    Returns at least `intervals.count` points if the table has as many. Reads files as far back as needed, so the
    cost depends on the intervals and not on the size of the table.
    """
    table, wanted_count = open_table(path), intervals.count
    while table is not None:
        # A window that ends on a boundary belongs to the interval before it; a batch time to the one after it.
        after_ms = intervals.start_ms - (0 if column == "window_end" else 1)
        rows, is_whole_table = read_rows_after(table, column, after_ms)
        points = compute_points(rows)
        if is_whole_table or len(points) >= wanted_count:
            return points
        intervals = replace(intervals, count=4 * intervals.count)
    return []


def read_rows_after(
    table: DeltaTable, column: str, after_ms: int, columns: Sequence[str] | None = None
) -> tuple[pa.Table, bool]:
    """Return the rows whose time in a column is later, and whether the table has no other rows with a time.

    A file without statistics is read. Files are selected here because the library skips files without statistics
    for the column.
    """
    from pyarrow import dataset  # imports pandas

    table_dataset = table.to_pyarrow_dataset()
    wanted_paths = _list_files_after(table, column, after_ms)
    chosen_fragments = [
        fragment
        for fragment in table_dataset.get_fragments()
        if wanted_paths is None or fragment.path in wanted_paths
    ]
    chosen_dataset = dataset.FileSystemDataset(
        chosen_fragments, table_dataset.schema, table_dataset.format, table_dataset.filesystem
    )
    rows = chosen_dataset.to_table(columns=None if columns is None else [*columns])
    is_later = pc.greater(to_milliseconds(rows.column(column)), after_ms)
    is_every_file = len(chosen_fragments) == len(table.file_uris())
    return rows.filter(pc.fill_null(is_later, False)), is_every_file and pc.all(is_later).as_py() is not False


def add_missed_share(
    points: list[StatisticsPoint], late_table_path: StoragePath, every_ms: int
) -> list[StatisticsPoint]:
    """Return the points of windows with the share of records that were late for them.

    `late_table_path` is the table of late records; if it does not exist, the points stay unchanged.
    """
    table = open_table(late_table_path)
    if table is None or not points:
        return points
    ends = to_milliseconds(
        read_rows_after(table, "window_end", points[0].at_ms, ["window_end"])[0].column("window_end")
    )
    # A window that ends on a boundary belongs to the interval before it.
    missed_counts = Counter((end - 1) // every_ms * every_ms for end in ends.to_pylist())
    return [
        replace(point, figures={**point.figures, **_missed_share(point, missed_counts[point.at_ms])})
        for point in points
    ]


def _missed_share(point: StatisticsPoint, count: int) -> dict[str, float]:
    record_count = point.figures["records"] + count
    return {"share_missed": count / record_count if record_count else 0.0}


def _list_files_after(table: DeltaTable, column: str, after_ms: int) -> set[str] | None:
    """Return the files that may have a later row; None if no file has statistics."""
    files = pa.table(table.get_add_actions(flatten=True))
    if f"max.{column}" not in files.column_names:
        return None
    # Statistics may truncate a time to milliseconds.
    is_candidate = pc.fill_null(
        pc.greater_equal(to_milliseconds(files.column(f"max.{column}")), after_ms), True
    )
    return set(files.filter(is_candidate).column("path").to_pylist())
