"""Aggregates that cannot take a change back, over changes: they keep every value, with how often it counts.

A change that is taken back has another address than when it came, so elements are known by their event time and
their values. Those of one time stand in the order of their values.
"""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import chain, repeat
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part
from penstock.pipelines.fold.aggregates.kinds import compared, kept
from penstock.pipelines.fold.aggregates.lists import Entry, Lists, entries_of, objects, place, rank, singles
from penstock.pipelines.fold.aggregates.order import TIME, Place, named, struct
from penstock.pipelines.fold.aggregates.setting import WEIGHT, Setting, valid
from penstock.pipelines.fold.rows import Column, Rows, python_values
from penstock.pipelines.plan.aggregates import (
    Aggregate,
    Collect,
    Custom,
    Distinct,
    First,
    Last,
    Max,
    Min,
    Output,
    Quantiles,
    TopN,
    aggregate_fields,
)
from penstock.pipelines.plan.predicates import quoted


def bag(output: Output, kind: pa.DataType, setting: Setting) -> Accumulator:
    """The values of an aggregate's fields, from which it is computed anew for each pane; `kind` is its type."""
    name, fields = output.name, aggregate_fields(output.of)
    values = [
        Place(f"value_{number}", quoted(each), _kind(output, each, setting.types[each]))
        for number, each in enumerate(fields)
    ]
    places = [TIME, *values, Place("weight", WEIGHT, pa.int64())]
    columns = [TIME.column, *fields, WEIGHT]
    needed = _needed(output.of)
    merge = Lists(tuple(f"{name}_{each.name}s" for each in places), _netted)
    entry = struct(*named(places))
    if needed is not None:
        entry = f"CASE WHEN {quoted(needed)} IS NOT NULL THEN {entry} END"
    made = f"collect_list({entry})"

    def part(of_entry: Place, column: str) -> Part:
        def lift(elements: pa.Table) -> Column:
            count = elements.num_rows
            there = np.ones(count, bool) if needed is None else valid(elements, needed) > 0
            return singles(python_values(elements.column(column)), there.tolist())

        return Part(
            f"{name}_{of_entry.name}s", f"{made}.{of_entry.name}", pa.list_(of_entry.type), merge, lift
        )

    def show(rows: Rows) -> Column:
        return objects([_computed(output.of, list(held), setting) for held in entries_of(rows, merge.names)])

    parts = tuple(part(*each) for each in zip(places, columns, strict=True))
    return Accumulator(name, kind, parts, show)


def _kind(output: Output, field: str, kind: pa.DataType) -> pa.DataType:
    """The type of a field: by values that are only shown nothing is judged, so that they may be lists."""
    match output.of:
        case First() | Last() | Collect():
            return kept(kind, output)
        case TopN(by=str(by)) if field != by:
            return kept(kind, output)
        case _:
            return compared(kind, output)


def _needed(of: Aggregate) -> str | None:
    """The field without which an element does not count."""
    match of:
        case Custom():
            return None
        case TopN(field, by=by):
            return by or field
        case _:
            return aggregate_fields(of)[0]


def _netted(entries: list[Entry]) -> Sequence[Entry]:
    """Each element once, with the sum of its weights; those that came and went are forgotten."""
    weights: Counter[Entry] = Counter()
    for *element, weight in entries:
        weights[tuple(element)] += weight
    there = [(*element, weight) for element, weight in weights.items() if weight]
    return sorted(there, key=lambda entry: (entry[0], [place(value) for value in entry[1:-1]]))


def _computed(of: Aggregate, entries: Sequence[Entry], setting: Setting) -> Any:
    elements = list(chain.from_iterable(repeat(tuple(e[1:-1]), max(e[-1], 0)) for e in entries))
    if isinstance(of, Custom):
        return _combined(of, elements, setting)
    found = [element[0] for element in elements]
    match of:
        case Distinct():
            return len(dict.fromkeys(found))
        case Collect():
            return tuple(found)
        case Quantiles(ranks=ranks):
            return _at_ranks(sorted(found, key=rank), ranks)
        case TopN(n=n, largest=largest):
            best = sorted(elements, key=lambda element: rank(element[-1]), reverse=largest)
            return tuple(element[0] for element in best[:n])
    return _chosen(of, found) if found else None


def _chosen(of: Aggregate, found: Sequence[Any]) -> Any:
    """One of the values, of which there is at least one."""
    match of:
        case Min():
            return min(found, key=rank)
        case Max():
            return max(found, key=rank)
        case First():
            return found[0]
        case Last():
            return found[-1]
        case _:
            raise TypeError(f"{of} takes changes back by itself")


def _at_ranks(found: Sequence[Any], ranks: Sequence[float]) -> tuple[Any, ...]:
    """The least value at or below which at least each share of all lies."""
    if not found:
        return (None,) * len(ranks)
    chosen = [found[max(ceil(share * len(found)), 1) - 1] for share in ranks]
    return tuple(float(value) if isinstance(value, Decimal) else value for value in chosen)


def _combined(of: Custom, elements: Sequence[Entry], setting: Setting) -> Any:
    combiner = of.combiner.resolve()
    columns = zip(*elements, strict=True) if elements else [()] * len(of.fields)
    arrays = [pa.array(values, setting.types[name]) for name, values in zip(of.fields, columns, strict=True)]
    table = pa.table(arrays, names=list(of.fields))
    return python_values(combiner.result(combiner.add(table, np.zeros(len(elements), np.int64), 1)))[0]
