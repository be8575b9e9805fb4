"""Reads the state of a stream after a batch, from files that never change.

Writes nothing, so the stream's host may run. The host removes batches beyond the journal; if the files of a batch
disappear during the read, that is an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite, isnan
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.journal import read_retained_outcomes
from penstock.engine.errors import JournalError
from penstock.engine.state import sorted_run
from penstock.engine.state.header_columns import STATE_HEADER
from penstock.engine.state.sorted_run import SortedRun
from penstock.engine.tables.timestamps import as_table, to_timestamps

PACKED_COLUMNS = ("function_state", "timers")
"""Columns that hold the packed state of a stateful function; a vectorized function has its own columns."""


@dataclass(frozen=True)
class StageSnapshot:
    """The state of one stage after a batch."""

    stage: str
    batch_id: int
    runs: tuple[SortedRun, ...]

    @property
    def bytes(self) -> int:
        """The size of its files."""
        return sum(run.path.stat().st_size for run in self.runs if run.path is not None)

    @property
    def rows(self) -> int:
        """The number of rows in its files, superseded ones included."""
        return sum(len(run) for run in self.runs)

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The fields of its key; none if the state is empty."""
        columns = self.runs[0].table.column_names if self.runs else []
        leading_columns = columns[: columns.index("window_start")] if columns else []
        return tuple(name for name in leading_columns if name not in STATE_HEADER.names)

    def read_table(self) -> pa.Table:
        """Return the current row of every window or key, with times as timestamps."""
        if not self.runs:
            return pa.table({})
        merged_rows = sorted_run.merge_runs(self.runs, includes_oldest=True)
        internal_columns = {*STATE_HEADER.names, *sorted_run.DUE_INDEX_SCHEMA.names}
        # The state of a key has no window bounds.
        if {"timers", "newest_time"} <= set(merged_rows.column_names):
            internal_columns |= {"window_start", "window_end"}
            position = merged_rows.schema.get_field_index("newest_time")
            merged_rows = merged_rows.set_column(
                position, "newest_time", to_timestamps(merged_rows.column("newest_time"))
            )
        return as_table(
            merged_rows.select([name for name in merged_rows.column_names if name not in internal_columns])
        )


def list_available_batches(directory: Path) -> list[int]:
    """Return the batches whose state can be read, oldest first."""
    return [outcome.batch_id for outcome in read_retained_outcomes(directory / "journal")]


def read_state_at(directory: Path, batch_id: int | None = None) -> Mapping[str, StageSnapshot]:
    """Return the state of each stage after a batch, the newest by default. Raises JournalError if it is gone."""
    journal = directory / "journal"
    outcomes_by_id = {outcome.batch_id: outcome for outcome in read_retained_outcomes(journal)}
    if not outcomes_by_id:
        raise JournalError(journal, "no batch is committed yet", "Start the stream, or try again in a moment")
    wanted_id = max(outcomes_by_id) if batch_id is None else batch_id
    if wanted_id not in outcomes_by_id:
        available_ids = f"{min(outcomes_by_id)} to {max(outcomes_by_id)}"
        raise JournalError(
            journal, f"batch {wanted_id} is not retained", f"Choose a batch from {available_ids}"
        )
    snapshots = {}
    for stage, files in outcomes_by_id[wanted_id].state_files.items():
        if stage.startswith("/"):  # the ids of the deduplication; no stage has such a name
            continue
        try:
            runs = tuple(sorted_run.open_run(directory / "state" / stage / name) for name in files)
        except OSError as error:
            raise JournalError(
                directory / "state" / stage,
                f"the files of batch {wanted_id} are gone ({error})",
                "Choose a newer batch",
            ) from error
        snapshots[stage] = StageSnapshot(stage, wanted_id, runs)
    return snapshots


def select_key_rows(snapshot: StageSnapshot, key: Mapping[str, str]) -> pa.Table:
    """Return the rows of a key, given as text by field. Raises JournalError for an unknown field."""
    rows = snapshot.read_table()
    if not snapshot.runs or not key:
        return rows
    for name in key:
        if name not in snapshot.key_fields:
            field_names = ", ".join(snapshot.key_fields)
            fix = f"Name one or more of: {field_names}" if field_names else "Leave --key out"
            raise JournalError(f"stage {snapshot.stage}", f"its key has no field {name!r}", fix)
    return rows.filter(match_key(rows, key))


def match_key(rows: pa.Table, key: Mapping[str, str]) -> pa.ChunkedArray:
    """Return which rows match a key, given as text by field. Raises JournalError for a value of another type."""
    is_match = pa.chunked_array([pa.repeat(pa.scalar(value=True), rows.num_rows)])
    for name, value_text in key.items():
        column = rows.column(name)
        try:
            value = pc.cast(pa.scalar(value_text), column.type)
        except pa.ArrowInvalid as error:
            fix = f"Enter a value of type {column.type}"
            raise JournalError(f"key {name}", f"{value_text!r} is not of type {column.type}", fix) from error
        is_match = pc.and_(is_match, pc.fill_null(pc.equal(column, value), fill_value=False))
    return is_match


def decode_packed_columns(rows: pa.Table) -> pa.Table:
    """Return the rows with packed state as JSON."""
    for name in PACKED_COLUMNS:
        if name in rows.column_names and pa.types.is_binary(rows.schema.field(name).type):
            position = rows.schema.get_field_index(name)
            json_texts = [
                None if packed is None else _to_json_text(msgspec.msgpack.decode(packed))
                for packed in rows.column(name).to_pylist()
            ]
            rows = rows.set_column(position, name, pa.array(json_texts, pa.string()))
    return rows


def _to_json_text(value: Any) -> str:
    return msgspec.json.encode(_to_json_value(value)).decode()


def _to_json_value(value: Any) -> Any:
    """Convert to what JSON can hold: compound keys and numbers such as NaN become text."""
    match value:
        case dict():
            return {_to_json_key(key): _to_json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_to_json_value(item) for item in value]
        case float() if not isfinite(value):
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case _:
            return value


def _to_json_key(key: Any) -> Any:
    """Convert a key to what JSON can hold."""
    is_simple = isinstance(key, str | bytes | int | datetime) and not isinstance(key, bool)
    return key if is_simple else _to_json_text(key).strip('"')
