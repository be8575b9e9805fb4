"""Suggestions from the table of a running stream: those of the newest complete window, by prefix.

The table is read again only when it has a new version. An answer reflects the last commit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.engine.storage import StoragePath, parse_storage_path
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.timestamp_clamping import clamp_timestamps
from penstock.platform.errors import TableNotFoundError
from penstock.quality.statistics.recent_points import newest_time_ms, read_rows_after

SUGGESTION_COLUMNS = ("typed", "window_start", "window_end", "suggestions", "timing")


@dataclass(frozen=True)
class SuggestionSet:
    """Suggestions with their window, the timing of the pane, and the version of the table."""

    suggestions: tuple[str, ...] = ()
    window_start: datetime | None = None
    window_end: datetime | None = None
    timing: str = ""
    version: int = -1


class SuggestionLookup:
    """Lookups in one table. Thread-safe: concurrent lookups run one after the other."""

    def __init__(self, address: str | StoragePath) -> None:
        table_path = parse_storage_path(address) if isinstance(address, str) else address
        if not is_delta_table(table_path):
            raise TableNotFoundError(
                f"there is no table at {table_path} yet; start it with `penstock stream start hashtags`, and "
                "feed it with `penstock ingest tweets --rate 50`"
            )
        self._table = open_delta_table(table_path)
        self._suggestions_by_prefix: Mapping[str, SuggestionSet] = read_suggestions(self._table)
        self._lock = Lock()

    def suggest(self, prefix: str) -> SuggestionSet:
        """Return the suggestions for a prefix; for a prefix longer than any in the table, the matching ones."""
        with self._lock:
            old_version = self._table.version()
            self._table.update_incremental()
            if self._table.version() != old_version:
                self._suggestions_by_prefix = read_suggestions(self._table)
            suggestion_set, version = self._suggestions_by_prefix.get(prefix), self._table.version()
            if suggestion_set is None and prefix:
                suggestion_set = suggest_longer(self._suggestions_by_prefix, prefix)
        return suggestion_set or SuggestionSet(version=version)


def suggest_longer(suggestions_by_prefix: Mapping[str, SuggestionSet], prefix: str) -> SuggestionSet | None:
    """Return the suggestions of the longest known prefix that match the longer one."""
    for length in range(len(prefix) - 1, 0, -1):
        if (suggestion_set := suggestions_by_prefix.get(prefix[:length])) is not None:
            matching = tuple(
                suggestion for suggestion in suggestion_set.suggestions if suggestion.startswith(prefix)
            )
            return SuggestionSet(
                matching,
                suggestion_set.window_start,
                suggestion_set.window_end,
                suggestion_set.timing,
                suggestion_set.version,
            )
    return None


def _read_newest_rows(table: DeltaTable) -> pa.Table:
    """Read only the rows of windows that start within one window length of the newest."""
    start, end = (newest_time_ms(table, name) for name in ("window_start", "window_end"))
    if start is None or end is None:
        return table.to_pyarrow_table(columns=list(SUGGESTION_COLUMNS))
    return read_rows_after(table, "window_start", start - (end - start) - 1, SUGGESTION_COLUMNS)[0]


def read_suggestions(table: DeltaTable) -> dict[str, SuggestionSet]:
    """Return the suggestions of each prefix from the newest nearly complete window.

    Windows slide, so the newest ones have only started. The window that ends next is the most complete one.
    """
    rows = clamp_timestamps(_read_newest_rows(table))
    if not rows.num_rows:
        return {}
    newest_start: datetime = pc.max(rows.column("window_start")).as_py()
    window_size: timedelta = pc.max(rows.column("window_end")).as_py() - newest_start
    recent_rows = rows.filter(pc.greater(rows.column("window_end"), pa.scalar(newest_start)))
    recent_rows = recent_rows.filter(
        pc.greater(recent_rows.column("window_start"), pa.scalar(newest_start - window_size))
    )
    suggestions_by_prefix: dict[str, SuggestionSet] = {}
    for row in recent_rows.sort_by([("window_start", "descending")]).to_pylist():
        if row["suggestions"]:
            suggestions_by_prefix[row["typed"]] = SuggestionSet(
                tuple(row["suggestions"]),
                row["window_start"],
                row["window_end"],
                row["timing"],
                table.version(),
            )
    return suggestions_by_prefix
