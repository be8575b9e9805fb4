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

from penstock.pipelines.batch.journal import kept_outcomes
from penstock.pipelines.errors import JournalError
from penstock.pipelines.state import run as runs_of
from penstock.pipelines.state.columns import HEADER
from penstock.pipelines.state.run import Run
from penstock.pipelines.tables.columns import as_table, timestamps

PACKED = ("memory", "timers")
"""Columns that hold packed values of a function with a memory; a vectorised one has columns of its own."""


@dataclass(frozen=True)
class KeptState:
    """The state of one stage after a batch."""

    stage: str
    batch_id: int
    runs: tuple[Run, ...]

    @property
    def bytes(self) -> int:
        """How much its files take."""
        return sum(run.path.stat().st_size for run in self.runs if run.path is not None)

    @property
    def rows(self) -> int:
        """How many rows its files hold, those included that younger ones stand for."""
        return sum(len(run) for run in self.runs)

    @property
    def key(self) -> tuple[str, ...]:
        """The fields of its key; none where nothing was kept yet."""
        columns = self.runs[0].table.column_names if self.runs else []
        before = columns[: columns.index("window_start")] if columns else []
        return tuple(name for name in before if name not in HEADER.names)

    def table(self) -> pa.Table:
        """Every window, or key, that is kept: each once, as it is now, with times as timestamps."""
        if not self.runs:
            return pa.table({})
        merged = runs_of.merge(self.runs, oldest=True)
        ours = {*HEADER.names, *runs_of.INDEXES.names}
        if {"timers", "newest"} <= {*merged.column_names}:  # a key has no bounds
            ours |= {"window_start", "window_end"}
            place = merged.schema.get_field_index("newest")
            merged = merged.set_column(place, "newest", timestamps(merged.column("newest")))
        return as_table(merged.select([name for name in merged.column_names if name not in ours]))


def batches(directory: Path) -> list[int]:
    """The batches of a stream whose state can be looked at, from old to young."""
    return [outcome.batch_id for outcome in kept_outcomes(directory / "journal")]


def state_at(directory: Path, batch_id: int | None = None) -> Mapping[str, KeptState]:
    """The state of each stage after a batch, or after the newest. Raises JournalError where it is not there."""
    journal = directory / "journal"
    found = {outcome.batch_id: outcome for outcome in kept_outcomes(journal)}
    if not found:
        raise JournalError(journal, "no batch is decided yet", "Start the stream, or look again in a moment")
    wanted = max(found) if batch_id is None else batch_id
    if wanted not in found:
        reach = f"{min(found)} to {max(found)}"
        raise JournalError(journal, f"batch {wanted} is not kept", f"Ask for one of {reach}")
    states = {}
    for stage, files in found[wanted].state_files.items():
        if stage.startswith("/"):  # ids of records that were seen: no stage has such a name
            continue
        try:
            runs = tuple(runs_of.read(directory / "state" / stage / name) for name in files)
        except OSError as problem:
            raise JournalError(
                directory / "state" / stage,
                f"the files of batch {wanted} are gone ({problem})",
                "Ask for a younger one",
            ) from problem
        states[stage] = KeptState(stage, wanted, runs)
    return states


def of_key(kept: KeptState, key: Mapping[str, str]) -> pa.Table:
    """The rows of a key, whose fields are given as text. Raises JournalError for what is no key of the stage."""
    rows = kept.table()
    if not kept.runs or not key:
        return rows
    for name in key:
        if name not in kept.key:
            found = ", ".join(kept.key)
            fix = f"Name one or more of: {found}" if found else "Leave --key out"
            raise JournalError(f"stage {kept.stage}", f"its key has no field {name!r}", fix)
    return rows.filter(is_key(rows, key))


def is_key(rows: pa.Table, key: Mapping[str, str]) -> pa.ChunkedArray:
    """Which rows are of a key, whose fields are given as text. Raises JournalError for one of another type."""
    same = pa.chunked_array([pa.repeat(pa.scalar(value=True), rows.num_rows)])
    for name, text in key.items():
        column = rows.column(name)
        try:
            value = pc.cast(pa.scalar(text), column.type)
        except pa.ArrowInvalid as problem:
            fix = "Give a value of that type"
            raise JournalError(
                f"key {name}", f"it is of type {column.type}, {text!r} is none", fix
            ) from problem
        same = pc.and_(same, pc.fill_null(pc.equal(column, value), fill_value=False))
    return same


def unpacked(rows: pa.Table) -> pa.Table:
    """The same with what functions remember as JSON."""
    for name in PACKED:
        if name in rows.column_names and pa.types.is_binary(rows.schema.field(name).type):
            place = rows.schema.get_field_index(name)
            told = [
                None if packed is None else _text(msgspec.msgpack.decode(packed))
                for packed in rows.column(name).to_pylist()
            ]
            rows = rows.set_column(place, name, pa.array(told, pa.string()))
    return rows


def _text(value: Any) -> str:
    return msgspec.json.encode(_known_to_json(value)).decode()


def _known_to_json(value: Any) -> Any:
    """A value of which JSON knows all: keys that are more than one value, and numbers that are none, are texts."""
    match value:
        case dict():
            return {_name(key): _known_to_json(each) for key, each in value.items()}
        case list() | tuple():
            return [_known_to_json(each) for each in value]
        case float() if not isfinite(value):
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case _:
            return value


def _name(key: Any) -> Any:
    """A key as JSON may have it."""
    simple = isinstance(key, str | bytes | int | datetime) and not isinstance(key, bool)
    return key if simple else _text(key).strip('"')
