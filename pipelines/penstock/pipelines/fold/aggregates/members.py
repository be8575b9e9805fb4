"""The elements of one input, each with some fields: what a join puts together."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Merge, Part
from penstock.pipelines.fold.aggregates.kinds import carried
from penstock.pipelines.fold.aggregates.lists import (
    Appended,
    Entry,
    Lists,
    entries_of,
    objects,
    rank,
    singles,
)
from penstock.pipelines.fold.aggregates.order import Place, named, struct
from penstock.pipelines.fold.aggregates.restricted import INPUT, TOPIC
from penstock.pipelines.fold.aggregates.setting import WEIGHT, Setting
from penstock.pipelines.fold.rows import Column, Rows, python_values
from penstock.pipelines.plan.aggregates import Members, Output
from penstock.pipelines.plan.predicates import literal, quoted

THERE = Place("there", "true", pa.bool_())
"""What is kept of elements of which no field is asked for: that they are there."""


def members(output: Output, of: Members, setting: Setting) -> Accumulator:
    """The elements of an input, as a list for each field; changes are netted: what was taken back is gone."""
    fields = [
        Place(f"field_{number}", quoted(name), carried(setting.types[name], name, of.input))
        for number, name in enumerate(of.fields)
    ] or [THERE]
    places = [*fields, *([Place("weight", WEIGHT, pa.int64())] if setting.changes else [])]
    columns = [*(of.fields or (None,)), *([WEIGHT] if setting.changes else [])]
    names = tuple(f"{output.name}_{place.name}s" for place in places)
    merge: Merge = Lists(names, _netted) if setting.changes else Appended(names)
    made = f"collect_list(CASE WHEN {TOPIC} = {literal(of.input)} THEN {struct(*named(places))} END)"

    def part(name: str, place: Place, column: str | None) -> Part:
        def lift(elements: pa.Table) -> Column:
            ours = np.asarray(elements.column(INPUT)) == of.input
            values = repeat(True, len(ours)) if column is None else python_values(elements.column(column))
            return singles(list(values), ours.tolist())

        return Part(name, f"{made}.{place.name}", pa.list_(place.type), merge, lift)

    def show(rows: Rows) -> Column:
        if setting.changes:
            return objects([_present(list(held), len(fields)) for held in entries_of(rows, names)])
        lists = [[held or () for held in rows[name].tolist()] for name in names]
        return objects(list(zip(*lists, strict=True)))

    kind = pa.list_(
        pa.struct([pa.field(name, place.type) for name, place in zip(of.fields, fields, strict=False)])
    )
    parts = tuple(part(*each) for each in zip(names, places, columns, strict=True))
    return Accumulator(output.name, kind, parts, show)


def _netted(entries: list[Entry]) -> Sequence[Entry]:
    weights: Counter[Entry] = Counter()
    for *element, weight in entries:
        weights[tuple(element)] += weight
    return [(*element, weight) for element, weight in weights.items() if weight]


def _present(entries: Sequence[Entry], fields: int) -> tuple[Sequence[object], ...]:
    """The elements that are there, field by field."""
    there = chain.from_iterable(repeat(entry[:-1], max(entry[-1], 0)) for entry in entries)
    # What was taken back may come again at another place: only their order tells whether anything is new.
    rows = sorted(there, key=_place)
    return tuple(zip(*rows, strict=True)) if rows else ((),) * fields


def _place(value: Any) -> tuple[bool, Any]:
    """Where a value stands among others of its kind: null is the last, and a list goes by what is in it."""
    if isinstance(value, tuple):
        return False, [_place(each) for each in value]
    return value is None, value is not None and rank(value)
