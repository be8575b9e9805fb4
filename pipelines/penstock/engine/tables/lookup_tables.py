"""Reads the Delta tables of a stream's lookups: their newest versions, and their rows at a version.

When the version changes, the driver reads the whole table and broadcasts it to the executors with each batch. So a
lookup table must be small; larger ones are refused.
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
"""The most rows of a lookup table."""


class LookupTables:
    """The lookup tables of one stream. Caches the last rows read, as most batches see the same version."""

    def __init__(
        self, steps: Sequence[LookupStep], warehouse: StoragePath, max_rows: int = MAX_LOOKUP_ROWS
    ) -> None:
        self._paths = {step.table: resolve_storage_path(warehouse, step.table) for step in steps}
        self._tables_by_name: dict[str, DeltaTable] = {}
        self._cached_rows: dict[LookupStep, tuple[int, pa.Table]] = {}
        self._max_rows = max_rows

    def read_versions(self) -> dict[str, int]:
        """Return the newest version of each table; raise LookupTableError when a table does not exist."""
        return {name: self._read_newest_version(name) for name in self._paths}

    def rows_reader_at(self, versions: Mapping[str, int]) -> Callable[[LookupStep], pa.Table]:
        """Return a function that reads the rows of a step at these versions."""
        return lambda step: self.read_rows(step, versions[step.table])

    def read_rows(self, step: LookupStep, version: int) -> pa.Table:
        """Return the key columns and the added columns of a table at a version; keys are unique."""
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
            fix = (
                "Start the stream that writes it, or fix the name: a path below the warehouse, or an address"
            )
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
                f"version {version}, which the batch read when it started, was vacuumed",
                "Restore its files from a backup. Or remove the intent of the batch from the stream's journal, so "
                "that the batch reads the newest version",
            ) from error
        if rows.num_rows > self._max_rows:
            detail = f"it has {rows.num_rows:,} rows, but a lookup table may have at most {self._max_rows:,}"
            raise LookupTableError(
                step.table, detail, "Look up a smaller table, or read this one as an input"
            )
        return _require_unique_keys(step, version, _cast_columns(step, rows))


def _refuse_missing(step: LookupStep, missing: Sequence[str], existing: Sequence[str]) -> None:
    if missing:
        raise LookupTableError(
            step.table, f"it has no column {', '.join(missing)}", f"Available columns: {', '.join(existing)}"
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
            data_type = rows.schema.field(column.name).type
            detail = f"its column {column.name} is {data_type} and cannot be cast to {column.type}"
            raise LookupTableError(step.table, detail, "Declare its type in columns={...}") from error
    return rows


def _require_unique_keys(step: LookupStep, version: int, rows: pa.Table) -> pa.Table:
    """Return the rows without nulls in the key; raise LookupTableError when a key occurs twice."""
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
            "Look up a table with unique keys, such as the latest table of a pipeline with global_window()",
        )
    return rows
