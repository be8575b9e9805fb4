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

from penstock.pipelines.errors import LookupTableError
from penstock.pipelines.fold.returned import arrow_type
from penstock.pipelines.plan.steps import Lookup
from penstock.pipelines.store import Place, place_below
from penstock.pipelines.store.files import delta_table

LARGEST = 2_000_000
"""Rows of a table that may be looked into."""


class LookedUp:
    """The tables of one stream. Keeps the rows that were asked for last, since most batches see the same."""

    def __init__(self, steps: Sequence[Lookup], warehouse: Place, largest: int = LARGEST) -> None:
        self._places = {step.table: place_below(warehouse, step.table) for step in steps}
        self._open: dict[str, DeltaTable] = {}
        self._rows: dict[Lookup, tuple[int, pa.Table]] = {}
        self._largest = largest

    def versions(self) -> dict[str, int]:
        """The newest version of each table. LookupTableError where there is no such table."""
        return {name: self._newest(name) for name in self._places}

    def at(self, versions: Mapping[str, int]) -> Callable[[Lookup], pa.Table]:
        """What gives a step the rows that it is to see."""
        return lambda step: self.rows(step, versions[step.table])

    def rows(self, step: Lookup, version: int) -> pa.Table:
        """The rows of a table at a version: what is looked up by, and what is wanted, each row once."""
        known = self._rows.get(step)
        if known is None or known[0] != version:
            known = version, self._read(step, version)
            self._rows[step] = known
        return known[1]

    def _newest(self, name: str) -> int:
        try:
            if name in self._open:
                self._open[name].update_incremental()
            else:
                self._open[name] = delta_table(self._places[name])
        except (TableNotFoundError, DeltaError, OSError) as problem:
            self._open.pop(name, None)
            fix = "Start what writes it, or mend the name: a path below the warehouse, or an address"
            raise LookupTableError(name, f"there is no table at {self._places[name]}", fix) from problem
        return self._open[name].version()

    def _read(self, step: Lookup, version: int) -> pa.Table:
        wanted = [*step.on, *(column.name for column in step.columns)]
        try:
            table = delta_table(self._places[step.table], version)
            known = [field.name for field in table.schema().fields]
            _refuse_missing(step, [name for name in wanted if name not in known], known)
            rows: pa.Table = table.to_pyarrow_table(columns=wanted)
        except (TableNotFoundError, DeltaError, OSError) as problem:
            raise LookupTableError(
                step.table,
                f"version {version}, which the batch saw when it was begun, is gone: it was vacuumed",
                "Bring its files back from a backup; or remove the intent of the batch from the stream's journal, "
                "and it sees the newest version",
            ) from problem
        if rows.num_rows > self._largest:
            found = f"it has {rows.num_rows:,} rows, and {self._largest:,} at most are looked into"
            raise LookupTableError(step.table, found, "Look into a smaller one, or read it as an input")
        return _once(step, version, _typed(step, rows))


def _refuse_missing(step: Lookup, missing: Sequence[str], known: Sequence[str]) -> None:
    if missing:
        raise LookupTableError(
            step.table, f"it has no column {', '.join(missing)}", f"There are: {', '.join(known)}"
        )


def _typed(step: Lookup, rows: pa.Table) -> pa.Table:
    for column in step.columns:
        place, kind = rows.schema.get_field_index(column.name), arrow_type(column.type, column.name)
        try:
            rows = rows.set_column(place, column.name, pc.cast(rows.column(column.name), kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            found = f"its column {column.name} is {rows.schema.field(column.name).type}, no {column.type}"
            raise LookupTableError(step.table, found, "Say its type in columns={...}") from problem
    return rows


def _once(step: Lookup, version: int, rows: pa.Table) -> pa.Table:
    """Rows with all fields that are looked up by; of none there may be two."""
    for name in step.on:
        rows = rows.filter(pc.is_valid(rows.column(name)))
    counted = rows.group_by(list(step.on)).aggregate([([], "count_all")])
    twice: list[dict[str, Any]] = (
        counted.filter(pc.greater(counted.column("count_all"), 1)).slice(0, 1).to_pylist()
    )
    if twice:
        which = ", ".join(f"{name}={twice[0][name]}" for name in step.on)
        raise LookupTableError(
            step.table,
            f"version {version} has {twice[0]['count_all']} rows with {which}",
            "Look into a table that has one, such as the latest values of a pipeline with global_window()",
        )
    return rows
