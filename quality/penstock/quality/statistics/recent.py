"""The young rows of a table, without the old ones being read: files are chosen by what their statistics say."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.pipelines.store import Place
from penstock.quality.audit.tables import milliseconds, opened_table
from penstock.quality.statistics.series import Point


@dataclass(frozen=True)
class Stretches:
    """So many stretches of time up to a moment."""

    every_ms: int
    count: int
    until_ms: int

    @property
    def begin_ms(self) -> int:
        """The begin of the first of them."""
        return (self.until_ms // self.every_ms - self.count) * self.every_ms


def last_points(
    path: Place, column: str, wanted: Stretches, told: Callable[[pa.Table], list[Point]]
) -> list[Point]:
    """Return the points of the last stretches of a table that have any rows, so many at least where there are.

    Files are read as far back as it takes: what it costs follows the stretches, not the table.
    """
    table, enough = opened_table(path), wanted.count
    while table is not None:
        # A window that ends with a stretch belongs to it, and a batch whose clock begins one to that.
        after = wanted.begin_ms - (0 if column == "window_end" else 1)
        rows, whole = rows_after(table, column, after)
        points = told(rows)
        if whole or len(points) >= enough:
            return points
        wanted = replace(wanted, count=4 * wanted.count)
    return []


def rows_after(
    table: DeltaTable, column: str, after_ms: int, columns: Sequence[str] | None = None
) -> tuple[pa.Table, bool]:
    """Return the rows whose time in a column is later, and whether the table has no others but those without one.

    A file that does not tell is read. Files are chosen here and not by the library, which takes a file without
    statistics of a column for one without rows.
    """
    from pyarrow import dataset  # it loads pandas

    whole = table.to_pyarrow_dataset()
    wanted = _files_after(table, column, after_ms)
    chosen = [each for each in whole.get_fragments() if wanted is None or each.path in wanted]
    of_them = dataset.FileSystemDataset(chosen, whole.schema, whole.format, whole.filesystem)
    rows = of_them.to_table(columns=None if columns is None else [*columns])
    later = pc.greater(milliseconds(rows.column(column)), after_ms)
    every_file = len(chosen) == len(table.file_uris())
    return rows.filter(pc.fill_null(later, False)), every_file and pc.all(later).as_py() is not False


def with_missed(points: list[Point], late: Place, every_ms: int) -> list[Point]:
    """Return the points of windows with the share of the records for them that came too late for them.

    `late` is the table of those that did; without it nothing is said.
    """
    table = opened_table(late)
    if table is None or not points:
        return points
    ends = milliseconds(
        rows_after(table, "window_end", points[0].at_ms, ["window_end"])[0].column("window_end")
    )
    # A window that ends with a stretch belongs to it.
    missed = Counter((end - 1) // every_ms * every_ms for end in ends.to_pylist())
    return [
        replace(point, figures={**point.figures, **_missed(point, missed[point.at_ms])}) for point in points
    ]


def _missed(point: Point, count: int) -> dict[str, float]:
    came = point.figures["records"] + count
    return {"share_missed": count / came if came else 0.0}


def newest(table: DeltaTable, column: str) -> int | None:
    """Return the latest time of a column as the statistics of files say it; None where one does not tell."""
    files = pa.table(table.get_add_actions(flatten=True))
    if f"max.{column}" not in files.column_names or files.column(f"max.{column}").null_count:
        return None
    found = pc.max(milliseconds(files.column(f"max.{column}"))).as_py()
    return None if found is None else int(found)


def _files_after(table: DeltaTable, column: str, after_ms: int) -> set[str] | None:
    """The files that may have a later row; None where no file tells."""
    files = pa.table(table.get_add_actions(flatten=True))
    if f"max.{column}" not in files.column_names:
        return None
    # A time in the statistics may be cut to the millisecond.
    may = pc.fill_null(pc.greater_equal(milliseconds(files.column(f"max.{column}")), after_ms), True)
    return set(files.filter(may).column("path").to_pylist())
