"""Aggregates as columns: what Spark sends for each, how two become one, and what a pane shows.

An accumulator is made of parts that merge in any order: a batch's partials are merged into the state with the
same three operations, add, least and greatest. `present` parts count values, so that a window without any
shows null.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.rows import Column, Rows, Slot, numpy_type
from penstock.pipelines.plan import aggregates as plan
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.state.columns import Ints, Mask

Merge = Literal["add", "least", "greatest"]


@dataclass(frozen=True)
class Part:
    """One column of an accumulator: the Spark SQL that makes it, its type, and how two of it merge.

    Of a least or greatest only rows count in which `present`, the number of values, is above zero.
    """

    name: str
    sql: str
    type: pa.DataType
    merge: Merge
    present: str = ""

    @property
    def slot(self) -> Slot:
        """The column in the state, empty at first."""
        return Slot(self.name, self.type, None if numpy_type(self.type) is object else 0)


@dataclass(frozen=True)
class Accumulator:
    """An aggregate: its parts, and what is shown of them. `present` names the part that counts values."""

    output: str
    type: pa.DataType
    parts: tuple[Part, ...]
    show: Callable[[Rows], Column]
    present: str | None

    def values(self, rows: Rows) -> Column:
        """What a pane shows for each window, None where there was no value."""
        shown = self.show(rows)
        if self.present is None:
            return shown
        values = shown.astype(object)
        values[rows[self.present] == 0] = None
        return values


def accumulator(output: plan.Output, types: Mapping[str, pa.DataType]) -> Accumulator:
    """The accumulator for an output column over fields of these types."""
    name, of = output.name, output.of
    match of:
        case plan.Count(field):
            sql = "count(1)" if field is None else f"count({quoted(field)})"
            part = Part(name, sql, pa.int64(), "add")
            return Accumulator(name, pa.int64(), (part,), lambda rows: rows[name], None)
        case plan.Sum(field):
            kind = _summed(types[field], output)
            parts = (
                Part(f"{name}_sum", f"coalesce(sum({quoted(field)}), 0)", kind, "add"),
                _present(name, field),
            )
            return Accumulator(name, kind, parts, lambda rows: rows[f"{name}_sum"], f"{name}_present")
        case plan.Mean(field):
            _summed(types[field], output)
            sql = f"coalesce(sum(cast({quoted(field)} as double)), cast(0 as double))"
            parts = (Part(f"{name}_sum", sql, pa.float64(), "add"), _present(name, field))
            return Accumulator(name, pa.float64(), parts, lambda rows: _mean(rows, name), f"{name}_present")
        case plan.Min(field) | plan.Max(field):
            merge: Merge = "least" if isinstance(of, plan.Min) else "greatest"
            sql = f"{'min' if merge == 'least' else 'max'}({quoted(field)})"
            parts = (
                Part(f"{name}_{merge}", sql, types[field], merge, f"{name}_present"),
                _present(name, field),
            )
            return Accumulator(
                name, types[field], parts, lambda rows: rows[f"{name}_{merge}"], f"{name}_present"
            )
        case _:
            raise DefinitionError(
                f"aggregate.{name}",
                f"{type(of).__name__.lower()} is not run on Spark yet",
                "Use count, sum, mean, min or max, or run the reference evaluator",
            )


def merge_into(parts: Sequence[Part], rows: Rows, windows: Ints, incoming: Rows) -> None:
    """Merge partials into windows; `windows` says to which row each of them belongs.

    Partials are taken in their order, so sums of floating numbers come out the same again.
    """
    before = {part.present: rows[part.present] > 0 for part in parts if part.present}
    for part in parts:
        if part.merge == "add":
            np.add.at(rows[part.name], windows, incoming[part.name])
        else:
            there = incoming[part.present] > 0
            filled = before[part.present]
            _choose(rows[part.name], filled, windows[there], incoming[part.name][there], part.merge)


def _choose(target: Column, filled: Mask, windows: Ints, values: Column, merge: Merge) -> None:
    seen, positions = np.unique(windows, return_index=True)
    new = ~filled[seen]
    target[seen[new]] = values[positions[new]]
    # NaN is greater than every number, as in Spark: fmin passes over it, maximum does not.
    choose: Any = np.fmin if merge == "least" else np.maximum
    choose.at(target, windows, values)


def _present(name: str, field: str) -> Part:
    return Part(f"{name}_present", f"count({quoted(field)})", pa.int64(), "add")


def _summed(kind: pa.DataType, output: plan.Output) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    raise DefinitionError(
        f"aggregate.{output.name}",
        f"the field is of type {kind}, which has no sum",
        "Name a field of numbers",
    )


def _mean(rows: Rows, name: str) -> Column:
    present = rows[f"{name}_present"]
    return np.asarray(rows[f"{name}_sum"] / np.maximum(present, 1))
