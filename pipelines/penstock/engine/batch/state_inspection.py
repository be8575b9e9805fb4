"""What a stream keeps, looked at from outside: by the outcome of a batch, in files that never change.

Nothing is written, and the stream's host may be at work. It forgets what lies further back than its journal
reaches; a batch whose files went in the meantime is told as gone.
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
from penstock.engine.state import sorted_run as runs_of
from penstock.engine.state.header_columns import STATE_HEADER
from penstock.engine.state.sorted_run import SortedRun
from penstock.engine.tables.timestamps import as_table, to_timestamps

PACKED_COLUMNS = ("memory", "timers")
"""Columns that hold packed values of a function with a memory; a vectorized one has columns of its own."""


@dataclass(frozen=True)
class StageSnapshot:
    """The state of one stage after a batch."""

    stage: str
    batch_id: int
    runs: tuple[SortedRun, ...]

    @property
    def bytes(self) -> int:
        """How much its files take."""
        return sum(run.path.stat().st_size for run in self.runs if run.path is not None)

    @property
    def rows(self) -> int:
        """How many rows its files hold, those included that younger ones stand for."""
        return sum(len(run) for run in self.runs)

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The fields of its key; none where nothing was kept yet."""
        columns = self.runs[0].table.column_names if self.runs else []
        leading_columns = columns[: columns.index("window_start")] if columns else []
        return tuple(name for name in leading_columns if name not in STATE_HEADER.names)

    def read_table(self) -> pa.Table:
        """Every window, or key, that is kept: each once, as it is now, with times as timestamps."""
        if not self.runs:
            return pa.table({})
        merged_rows = runs_of.merge_runs(self.runs, includes_oldest=True)
        internal_columns = {*STATE_HEADER.names, *runs_of.DUE_INDEX_SCHEMA.names}
        if {"timers", "newest"} <= {*merged_rows.column_names}:  # a key has no bounds
            internal_columns |= {"window_start", "window_end"}
            position = merged_rows.schema.get_field_index("newest")
            merged_rows = merged_rows.set_column(
                position, "newest", to_timestamps(merged_rows.column("newest"))
            )
        return as_table(
            merged_rows.select([name for name in merged_rows.column_names if name not in internal_columns])
        )


def list_available_batches(directory: Path) -> list[int]:
    """The batches of a stream whose state can be looked at, from old to young."""
    return [outcome.batch_id for outcome in read_retained_outcomes(directory / "journal")]


def read_state_at(directory: Path, batch_id: int | None = None) -> Mapping[str, StageSnapshot]:
    """The state of each stage after a batch, or after the newest. Raises JournalError where it is not there."""
    journal = directory / "journal"
    outcomes_by_id = {outcome.batch_id: outcome for outcome in read_retained_outcomes(journal)}
    if not outcomes_by_id:
        raise JournalError(journal, "no batch is decided yet", "Start the stream, or look again in a moment")
    wanted_id = max(outcomes_by_id) if batch_id is None else batch_id
    if wanted_id not in outcomes_by_id:
        available_ids = f"{min(outcomes_by_id)} to {max(outcomes_by_id)}"
        raise JournalError(journal, f"batch {wanted_id} is not kept", f"Ask for one of {available_ids}")
    snapshots = {}
    for stage, files in outcomes_by_id[wanted_id].state_files.items():
        if stage.startswith("/"):  # ids of records that were seen: no stage has such a name
            continue
        try:
            runs = tuple(runs_of.open_run(directory / "state" / stage / name) for name in files)
        except OSError as error:
            raise JournalError(
                directory / "state" / stage,
                f"the files of batch {wanted_id} are gone ({error})",
                "Ask for a younger one",
            ) from error
        snapshots[stage] = StageSnapshot(stage, wanted_id, runs)
    return snapshots


def select_key_rows(snapshot: StageSnapshot, key: Mapping[str, str]) -> pa.Table:
    """The rows of a key, whose fields are given as text. Raises JournalError for what is no key of the stage."""
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
    """Which rows are of a key, whose fields are given as text. Raises JournalError for one of another type."""
    is_match = pa.chunked_array([pa.repeat(pa.scalar(value=True), rows.num_rows)])
    for name, value_text in key.items():
        column = rows.column(name)
        try:
            value = pc.cast(pa.scalar(value_text), column.type)
        except pa.ArrowInvalid as error:
            fix = "Give a value of that type"
            raise JournalError(
                f"key {name}", f"it is of type {column.type}, {value_text!r} is none", fix
            ) from error
        is_match = pc.and_(is_match, pc.fill_null(pc.equal(column, value), fill_value=False))
    return is_match


def decode_packed_columns(rows: pa.Table) -> pa.Table:
    """The same with what functions remember as JSON."""
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
    """A value of which JSON knows all: keys that are more than one value, and numbers that are none, are texts."""
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
    """A key as JSON may have it."""
    is_simple = isinstance(key, str | bytes | int | datetime) and not isinstance(key, bool)
    return key if is_simple else _to_json_text(key).strip('"')
