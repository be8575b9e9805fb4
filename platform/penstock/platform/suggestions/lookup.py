"""Suggestions from a table that a stream keeps writing: what the newest whole minute says of each beginning.

The table is read again when it has a new version, never more than that; an answer is what the last commit says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.pipelines.store import Place, place_of
from penstock.pipelines.store.files import delta_table, is_table
from penstock.pipelines.tables.legible import legible
from penstock.platform.errors import TableNotFoundError
from penstock.quality.statistics.recent import newest, rows_after

COLUMNS = ("typed", "window_start", "window_end", "suggestions", "timing")


@dataclass(frozen=True)
class Suggested:
    """What is suggested, in which window, how final it is, and by which version of the table."""

    suggestions: tuple[str, ...] = ()
    window_start: datetime | None = None
    window_end: datetime | None = None
    timing: str = ""
    version: int = -1


class Lookup:
    """Answers from one table; asked from several threads at once it answers one after the other."""

    def __init__(self, address: str | Place) -> None:
        place = place_of(address) if isinstance(address, str) else address
        if not is_table(place):
            raise TableNotFoundError(
                f"there is no table at {place} yet: `penstock stream start hashtags` runs the stream that "
                "writes it, `penstock ingest tweets --rate 50` feeds it"
            )
        self._table = delta_table(place)
        self._known: Mapping[str, Suggested] = read(self._table)
        self._lock = Lock()

    def of(self, typed: str) -> Suggested:
        """Return what is suggested for a beginning; for one longer than any in the table, what goes on so."""
        with self._lock:
            before = self._table.version()
            self._table.update_incremental()
            if self._table.version() != before:
                self._known = read(self._table)
            found, version = self._known.get(typed), self._table.version()
            if found is None and typed:
                found = longer(self._known, typed)
        return found or Suggested(version=version)


def longer(known: Mapping[str, Suggested], typed: str) -> Suggested | None:
    """Return what the longest beginning that is known suggests, as far as it goes on as was typed."""
    for length in range(len(typed) - 1, 0, -1):
        if (found := known.get(typed[:length])) is not None:
            left = tuple(each for each in found.suggestions if each.startswith(typed))
            return Suggested(left, found.window_start, found.window_end, found.timing, found.version)
    return None


def _newest_rows(table: DeltaTable) -> pa.Table:
    """The rows of windows that begin within a window's length of the newest: what came before is not read."""
    start, end = (newest(table, name) for name in ("window_start", "window_end"))
    if start is None or end is None:
        return table.to_pyarrow_table(columns=list(COLUMNS))
    return rows_after(table, "window_start", start - (end - start) - 1, COLUMNS)[0]


def read(table: DeltaTable) -> dict[str, Suggested]:
    """Return what each beginning suggests in the newest window that covers a whole stretch of time, or nearly.

    Windows slide: the newest have only begun. So that one counts whose end is nearest to the newest moment.
    """
    rows = legible(_newest_rows(table))
    if not rows.num_rows:
        return {}
    newest: datetime = pc.max(rows.column("window_start")).as_py()
    size: timedelta = pc.max(rows.column("window_end")).as_py() - newest
    recent = rows.filter(pc.greater(rows.column("window_end"), pa.scalar(newest)))
    recent = recent.filter(pc.greater(recent.column("window_start"), pa.scalar(newest - size)))
    found: dict[str, Suggested] = {}
    for row in recent.sort_by([("window_start", "descending")]).to_pylist():
        if row["suggestions"]:
            found[row["typed"]] = Suggested(
                tuple(row["suggestions"]),
                row["window_start"],
                row["window_end"],
                row["timing"],
                table.version(),
            )
    return found
