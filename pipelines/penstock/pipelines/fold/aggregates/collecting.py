"""Collect, and distinct values that are counted exactly: lists of values."""

from collections.abc import Sequence
from operator import itemgetter

import pyarrow as pa

from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part
from penstock.pipelines.fold.aggregates.kinds import compared
from penstock.pipelines.fold.aggregates.lists import Entry, Lists, objects, shown, singles
from penstock.pipelines.fold.aggregates.order import Place, named, places, struct
from penstock.pipelines.fold.aggregates.setting import Setting, valid
from penstock.pipelines.fold.rows import Column, Rows, python_values
from penstock.pipelines.plan.aggregates import Collect, Distinct, Output
from penstock.pipelines.plan.predicates import quoted


def collect(output: Output, of: Collect, setting: Setting) -> Accumulator:
    """All values of a field, each with its time and its address, by which they are kept in order."""
    name = output.name
    order = places(of.order, several=setting.several)
    value = Place("value", quoted(of.field), setting.types[of.field])
    entry = (*order, value)
    by = itemgetter(*range(len(order)))

    def in_order(entries: list[Entry]) -> Sequence[Entry]:
        return sorted(entries, key=by)

    merge = Lists(tuple(f"{name}_{place.name}s" for place in entry), in_order)
    made = f"collect_list(CASE WHEN {value.column} IS NOT NULL THEN {struct(*named(entry))} END)"
    columns = (*(place.column for place in order), of.field)
    parts = tuple(
        _list(f"{name}_{place.name}s", f"{made}.{place.name}", place.type, merge, column, of.field)
        for place, column in zip(entry, columns, strict=True)
    )
    return Accumulator(name, pa.list_(value.type), parts, lambda rows: shown(rows, f"{name}_values"))


def distinct(output: Output, of: Distinct, setting: Setting) -> Accumulator:
    """The number of different values, each of which is kept."""
    name = f"{output.name}_values"
    kind = compared(setting.types[of.field], output)
    merge = Lists((name,), lambda entries: list(dict.fromkeys(entries)))
    part = _list(name, f"collect_set({quoted(of.field)})", kind, merge, of.field, of.field)

    def show(rows: Rows) -> Column:
        return objects([len(values or ()) for values in rows[name].tolist()]).astype("int64")

    return Accumulator(output.name, pa.int64(), (part,), show)


def _list(name: str, sql: str, kind: pa.DataType, merge: Lists, column: str, field: str) -> Part:
    """A list of what a column holds of elements in which the field has a value."""

    def lift(elements: pa.Table) -> Column:
        return singles(python_values(elements.column(column)), valid(elements, field).tolist())

    return Part(name, sql, pa.list_(kind), merge, lift)
