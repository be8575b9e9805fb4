"""Min and max."""

import pyarrow as pa

from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part
from penstock.pipelines.fold.aggregates.kinds import compared
from penstock.pipelines.fold.aggregates.merges import Extreme
from penstock.pipelines.fold.aggregates.setting import Setting
from penstock.pipelines.fold.rows import Column, Rows, empty_of, numpy_column
from penstock.pipelines.plan.aggregates import Max, Min, Output
from penstock.pipelines.plan.predicates import quoted


def extreme(output: Output, of: Min | Max, setting: Setting) -> Accumulator:
    """The least or the greatest value of a field."""
    word = "max" if isinstance(of, Max) else "min"
    name = f"{output.name}_{word}"
    kind = compared(setting.types[of.field], output)
    present = setting.counted(f"{output.name}_present", of.field)
    merge = Extreme(name, present.name, greatest=word == "max")

    def lift(elements: pa.Table) -> Column:
        return numpy_column(elements.column(of.field))

    def show(rows: Rows) -> Column:
        return rows[name]

    part = Part(name, f"{word}({quoted(of.field)})", kind, merge, lift, empty_of(kind))
    return Accumulator(output.name, kind, (part, present), show, present.name)
