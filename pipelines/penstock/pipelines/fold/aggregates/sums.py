"""Count, sum and mean: numbers that add up, and from which a change can be taken back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.pipelines.errors import SumOverflowError
from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part
from penstock.pipelines.fold.aggregates.exactly import added, total
from penstock.pipelines.fold.aggregates.kinds import summed
from penstock.pipelines.fold.aggregates.lists import Lists, singles
from penstock.pipelines.fold.aggregates.merges import BIGINT, Added
from penstock.pipelines.fold.aggregates.setting import WEIGHT, Setting
from penstock.pipelines.fold.rows import Column, Rows, numpy_column
from penstock.pipelines.plan.aggregates import Count, Mean, Output, Sum
from penstock.pipelines.plan.predicates import literal, quoted
from penstock.pipelines.state.columns import Mask

SPECIAL = {"nan": np.nan, "up": np.inf, "down": -np.inf}
"""Values that a sum does not let go of: with changes they are counted instead of added."""


def count(output: Output, of: Count, setting: Setting) -> Accumulator:
    """The number of elements, or of values."""
    part = setting.counted(f"{output.name}_present", of.field)
    return Accumulator(output.name, pa.int64(), (part,), lambda rows: rows[part.name])


def sum_(output: Output, of: Sum, setting: Setting) -> Accumulator:
    """The sum of a field."""
    made = _Total(output.name, of.field, summed(setting.types[of.field], output), setting)
    present = setting.counted(f"{output.name}_present", of.field)
    return Accumulator(output.name, made.kind, (*made.parts(), present), made.shown, present.name)


def mean(output: Output, of: Mean, setting: Setting) -> Accumulator:
    """The mean of a field, as a floating number."""
    kind = summed(setting.types[of.field], output)
    exact = pa.types.is_decimal(kind)
    made = _Total(output.name, of.field, kind if exact else pa.float64(), setting)
    present = setting.counted(f"{output.name}_present", of.field)

    def show(rows: Rows) -> Column:
        divided: Column = made.shown(rows) / np.maximum(rows[present.name], 1)
        return divided.astype(np.float64)

    return Accumulator(output.name, pa.float64(), (*made.parts(), present), show, present.name)


@dataclass(frozen=True)
class _Total:
    """A sum in the making."""

    name: str
    field: str
    kind: pa.DataType
    setting: Setting

    @property
    def apart(self) -> bool:
        """Whether all can be taken back: it is kept as exact terms, and what is not finite is counted apart."""
        return self.setting.changes and pa.types.is_floating(self.kind)

    def parts(self) -> Iterator[Part]:
        name = f"{self.name}_sum"
        zero: Any = Decimal(0) if pa.types.is_decimal(self.kind) else 0
        if self.apart:
            made = f"collect_list({self._value()})"
            yield Part(name, made, pa.list_(pa.float64()), Lists((name,), added), self._terms)
        else:
            yield Part(name, self._sql(), self.kind, Added(name, self._room()), self._lift, zero)
        for word, number in SPECIAL.items() if self.apart else ():
            name = f"{self.name}_{word}"
            sql = f"coalesce(sum(CASE WHEN {quoted(self.field)} = double('{number}') THEN {WEIGHT} END), 0)"
            yield Part(name, sql, pa.int64(), Added(name), self._special(number), 0)

    def _room(self) -> int:
        return 10 ** (self.kind.precision - self.kind.scale) if pa.types.is_decimal(self.kind) else BIGINT

    def shown(self, rows: Rows) -> Column:
        held: Column = rows[f"{self.name}_sum"]
        if not self.apart:
            return held
        whole = np.fromiter(map(total, held.tolist()), np.float64, len(held))
        found = {word: rows[f"{self.name}_{word}"] > 0 for word in SPECIAL}
        whole = np.where(found["up"], np.inf, np.where(found["down"], -np.inf, whole))
        return np.where(found["nan"] | (found["up"] & found["down"]), np.nan, whole)

    def _sql(self) -> str:
        value = self._value()
        if pa.types.is_floating(self.kind):
            return f"coalesce(sum({value}), cast(0 as double))"
        too_great = literal(str(SumOverflowError(self.name)))
        return f"coalesce(try_sum({value}), CASE WHEN count({value}) = 0 THEN 0 ELSE raise_error({too_great}) END)"

    def _value(self) -> str:
        """What of an element is added."""
        value = quoted(self.field)
        if pa.types.is_floating(self.kind):
            value = f"cast({value} as double)"
        if self.apart:
            value = f"CASE WHEN abs({value}) < double('Infinity') THEN {value} END"
        return f"{WEIGHT} * {value}" if self.setting.changes else value

    def _lift(self, elements: pa.Table) -> Column:
        if pa.types.is_decimal(self.kind):
            found = [
                Decimal(0) if value is None else value for value in elements.column(self.field).to_pylist()
            ]
            return np.array(found, object) * self.setting.weights(elements)
        values = numpy_column(elements.column(self.field).cast(self.kind))
        weighted: Column = values * self.setting.weights(elements)
        return weighted

    def _terms(self, elements: pa.Table) -> Column:
        values = numpy_column(elements.column(self.field).cast(self.kind))
        weighted = np.where(np.isfinite(values), values, 0) * self.setting.weights(elements)
        return singles(weighted.tolist(), (weighted != 0).tolist())

    def _special(self, number: float) -> Callable[[pa.Table], Column]:
        def lift(elements: pa.Table) -> Column:
            values = numpy_column(elements.column(self.field).cast(pa.float64()))
            same: Mask = np.isnan(values) if np.isnan(number) else values == number
            weighted: Column = same * self.setting.weights(elements, self.field)
            return weighted

        return lift
