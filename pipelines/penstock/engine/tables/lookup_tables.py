"""Delta tables that a stream's steps look into: their newest versions, and their rows at a version.

A table is read whole into the driver when its version is another than that of the batch before, and goes to the
executors with each batch that joins it: it is meant for what fits there many times, and refused beyond a bound.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from penstock.engine.errors import LookupTableError
from penstock.engine.operators.stateful.schema import to_arrow_type
from penstock.engine.plan.steps import LookupStep
from penstock.engine.storage import StoragePath, resolve_storage_path
from penstock.engine.storage.file_access import open_delta_table

MAX_LOOKUP_ROWS = 2_000_000
"""Rows of a table that may be looked into."""


class LookupTables:
    """The tables of one stream. Keeps the rows that were asked for last, since most batches see the same."""

    def __init__(
        self, steps: Sequence[LookupStep], warehouse: StoragePath, max_rows: int = MAX_LOOKUP_ROWS
    ) -> None:
        self._paths = {step.table: resolve_storage_path(warehouse, step.table) for step in steps}
        self._tables_by_name: dict[str, DeltaTable] = {}
        self._cached_rows: dict[LookupStep, tuple[int, pa.Table]] = {}
        self._max_rows = max_rows

    def read_versions(self) -> dict[str, int]:
        """The newest version of each table. LookupTableError where there is no such table."""
        return {name: self._read_newest_version(name) for name in self._paths}

    def rows_reader_at(self, versions: Mapping[str, int]) -> Callable[[LookupStep], pa.Table]:
        """What gives a step the rows that it is to see."""
        return lambda step: self.read_rows(step, versions[step.table])

    def read_rows(self, step: LookupStep, version: int) -> pa.Table:
        """The rows of a table at a version: what is looked up by, and what is wanted, each row once."""
        cached = self._cached_rows.get(step)
        if cached is None or cached[0] != version:
            cached = version, self._read_version(step, version)
            self._cached_rows[step] = cached
        return cached[1]

    def _read_newest_version(self, name: str) -> int:
        try:
            if name in self._tables_by_name:
                self._tables_by_name[name].update_incremental()
            else:
                self._tables_by_name[name] = open_delta_table(self._paths[name])
        except (TableNotFoundError, DeltaError, OSError) as error:
            self._tables_by_name.pop(name, None)
            fix = "Start what writes it, or mend the name: a path below the warehouse, or an address"
            raise LookupTableError(name, f"there is no table at {self._paths[name]}", fix) from error
        return self._tables_by_name[name].version()

    def _read_version(self, step: LookupStep, version: int) -> pa.Table:
        wanted_columns = [*step.on, *(column.name for column in step.columns)]
        try:
            table = open_delta_table(self._paths[step.table], version)
            table_columns = [field.name for field in table.schema().fields]
            _refuse_missing(
                step, [name for name in wanted_columns if name not in table_columns], table_columns
            )
            rows: pa.Table = table.to_pyarrow_table(columns=wanted_columns)
        except (TableNotFoundError, DeltaError, OSError) as error:
            raise LookupTableError(
                step.table,
                f"version {version}, which the batch saw when it was begun, is gone: it was vacuumed",
                "Bring its files back from a backup; or remove the intent of the batch from the stream's journal, "
                "and it sees the newest version",
            ) from error
        if rows.num_rows > self._max_rows:
            detail = f"it has {rows.num_rows:,} rows, and {self._max_rows:,} at most are looked into"
            raise LookupTableError(step.table, detail, "Look into a smaller one, or read it as an input")
        return _require_unique_keys(step, version, _cast_columns(step, rows))


def _refuse_missing(step: LookupStep, missing: Sequence[str], existing: Sequence[str]) -> None:
    if missing:
        raise LookupTableError(
            step.table, f"it has no column {', '.join(missing)}", f"There are: {', '.join(existing)}"
        )


def _cast_columns(step: LookupStep, rows: pa.Table) -> pa.Table:
    for column in step.columns:
        position, data_type = (
            rows.schema.get_field_index(column.name),
            to_arrow_type(column.type, column.name),
        )
        try:
            rows = rows.set_column(position, column.name, pc.cast(rows.column(column.name), data_type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            detail = f"its column {column.name} is {rows.schema.field(column.name).type}, no {column.type}"
            raise LookupTableError(step.table, detail, "Say its type in columns={...}") from error
    return rows


def _require_unique_keys(step: LookupStep, version: int, rows: pa.Table) -> pa.Table:
    """Rows with all fields that are looked up by; of none there may be two."""
    for name in step.on:
        rows = rows.filter(pc.is_valid(rows.column(name)))
    row_counts = rows.group_by(list(step.on)).aggregate([([], "count_all")])
    duplicates: list[dict[str, Any]] = (
        row_counts.filter(pc.greater(row_counts.column("count_all"), 1)).slice(0, 1).to_pylist()
    )
    if duplicates:
        key_text = ", ".join(f"{name}={duplicates[0][name]}" for name in step.on)
        raise LookupTableError(
            step.table,
            f"version {version} has {duplicates[0]['count_all']} rows with {key_text}",
            "Look into a table that has one, such as the latest values of a pipeline with global_window()",
        )
    return rows
