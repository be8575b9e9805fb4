"""One's own combiner: asked for all groups at once, over Arrow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.errors import DefinitionError, UserCodeError
from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part
from penstock.pipelines.fold.aggregates.lists import objects
from penstock.pipelines.fold.aggregates.order import struct
from penstock.pipelines.fold.aggregates.setting import WEIGHT, Setting
from penstock.pipelines.fold.rows import Column, Rows, python_values
from penstock.pipelines.plan.aggregates import Custom, Output
from penstock.pipelines.plan.custom import Combiner
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.state.columns import Ints

Sign = Literal["", ">", "<"]
"""Which elements go into a part: all, those that come, or those that are taken back."""


def custom(output: Output, of: Custom, setting: Setting) -> Accumulator:
    """What the combiner makes of some fields. What is taken back is combined apart, and subtracted when shown."""
    owned = _Owned(output.name, of.combiner.resolve())
    signs: tuple[Sign, ...] = (">", "<") if setting.changes else ("",)
    parts = [_part(owned, of.fields, setting, sign) for sign in signs]

    def show(rows: Rows) -> Column:
        nothing = owned.add(_no_elements(of, setting), np.empty(0, np.int64), 1)
        held = [owned.partials(rows[part.name], nothing) for part in parts]
        combiner = owned.combiner
        partials = (
            _by_user("subtract", combiner, lambda: combiner.subtract(*held)) if setting.changes else held[0]
        )
        shown = _by_user("result", combiner, lambda: combiner.result(partials))
        result = owned.checked("result", shown, combiner.result_type, len(rows))
        return objects(python_values(result))

    return Accumulator(output.name, owned.combiner.result_type, tuple(parts), show)


@dataclass(frozen=True)
class _Owned:
    """A combiner, and the column that it fills. A partial is kept in a list of one, so that null is no number."""

    output: str
    combiner: Combiner

    def add(self, values: pa.Table, groups: Ints, count: int) -> pa.Array:
        added = _by_user("add", self.combiner, lambda: self.combiner.add(values, groups, count))
        return self.checked("add", added, self.combiner.partial_type, count)

    def merge(self, partials: pa.Array, groups: Ints, count: int) -> pa.Array:
        merged = _by_user("merge", self.combiner, lambda: self.combiner.merge(partials, groups, count))
        return self.checked("merge", merged, self.combiner.partial_type, count)

    def partials(self, column: Column, nothing: pa.Array | None = None) -> pa.Array:
        """What a column holds; of a row without elements null, or what the combiner says of nothing."""
        (empty,) = [None] if nothing is None else python_values(nothing)
        values = [empty if held is None else held[0] for held in column.tolist()]
        return pa.array(values, self.combiner.partial_type)

    def checked(self, function: str, found: pa.Array, kind: pa.DataType, count: int) -> pa.Array:
        """Refuse an answer that nobody asked for, before it gets into the state."""
        array = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        if array.type != kind or len(array) != count:
            raise DefinitionError(
                f"aggregate.{self.output}",
                f"{function} of {type(self.combiner).__name__} gave {len(array)} values of type {array.type}",
                f"Have it give {count} of type {kind}, one for each group",
            )
        return array


@dataclass(frozen=True)
class _Combined:
    """A column of partials, merged by the combiner."""

    name: str
    owned: _Owned = field(compare=False)

    def into(self, rows: Rows, windows: Ints, incoming: Rows) -> None:
        """Merge what came with what is held, for all windows at once."""
        touched, groups = np.unique(windows, return_inverse=True)
        both = np.concatenate([rows[self.name][touched], incoming[self.name]])
        groups = np.concatenate([np.arange(len(touched)), groups])
        merged = self.owned.merge(self.owned.partials(both), groups, len(touched))
        rows[self.name][touched] = _kept(merged)


def _part(owned: _Owned, fields: Sequence[str], setting: Setting, sign: Sign) -> Part:
    name = f"{owned.output}_{'gone' if sign == '<' else 'partial'}"
    element = struct(*(f"{quoted(each)} AS {quoted(each)}" for each in fields))
    chosen = f"CASE WHEN {WEIGHT} {sign} 0 THEN {element} END" if sign else element

    def lift(elements: pa.Table) -> Column:
        weights = setting.weights(elements)
        there = np.ones(len(weights), bool) if not sign else weights > 0 if sign == ">" else weights < 0
        chosen = elements.select(list(fields)).filter(pa.array(there))
        made = _kept(owned.add(chosen, np.flatnonzero(there), len(weights)))
        made[~there] = None
        return made

    return Part(
        name,
        f"collect_list({chosen})",
        pa.list_(owned.combiner.partial_type),
        _Combined(name, owned),
        lift,
        raw=pa.list_(pa.struct([pa.field(each, setting.types[each]) for each in fields])),
        finish=_finished(owned),
    )


def _no_elements(of: Custom, setting: Setting) -> pa.Table:
    return pa.schema([pa.field(name, setting.types[name]) for name in of.fields]).empty_table()


def _finished(owned: _Owned) -> Callable[[pa.Array], pa.Array]:
    """What the combiner makes of the elements of groups, each of which comes as a list of structs."""

    def finish(groups: pa.Array) -> pa.Array:
        elements = pa.Table.from_struct_array(groups.flatten())
        parents = pc.list_parent_indices(groups).to_numpy()
        partials = owned.add(elements, parents, len(groups))
        return pa.array(_kept(partials), pa.list_(owned.combiner.partial_type))

    return finish


def _by_user(function: str, combiner: Combiner, call: Callable[[], pa.Array]) -> pa.Array:
    """Call what is not ours; what it raises is told from errors of the engine."""
    try:
        return call()
    except Exception as problem:
        raise UserCodeError(f"{function} of {type(combiner).__name__}", problem) from problem


def _kept(partials: pa.Array) -> Column:
    return objects([None if partial is None else (partial,) for partial in python_values(partials)])
