"""First and last: a value with its time and its address."""

import pyarrow as pa

from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part
from penstock.pipelines.fold.aggregates.merges import Foremost
from penstock.pipelines.fold.aggregates.order import Place, named, places, struct
from penstock.pipelines.fold.aggregates.setting import Setting
from penstock.pipelines.fold.rows import Column, empty_of, numpy_column
from penstock.pipelines.plan.aggregates import First, Last, Output
from penstock.pipelines.plan.predicates import quoted


def end(output: Output, of: First | Last, setting: Setting) -> Accumulator:
    """The value of the first or of the last element that has one."""
    name, last = output.name, isinstance(of, Last)
    order = places(of.order, several=setting.several)
    value = Place("value", quoted(of.field), setting.types[of.field])
    present = setting.counted(f"{name}_present", of.field)
    by, carried = tuple(f"{name}_{place.name}" for place in order), f"{name}_value"
    merge = Foremost(by, (carried,), present.name, last)
    whole = struct(*named([value, *order]))
    when = f"CASE WHEN {value.column} IS NOT NULL THEN {struct(*(place.column for place in order))} END"
    chosen = f"({'max_by' if last else 'min_by'}({whole}, {when}))"

    def part(place: Place, column: str) -> Part:
        def lift(elements: pa.Table) -> Column:
            return numpy_column(elements.column(column))

        sql = f"{chosen}.{place.name}"
        return Part(f"{name}_{place.name}", sql, place.type, merge, lift, empty_of(place.type))

    parts = (part(value, of.field), *(part(place, place.column) for place in order), present)
    return Accumulator(name, value.type, parts, lambda rows: rows[carried], present.name)
