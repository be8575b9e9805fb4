"""Which types of a field an aggregate can be of."""

import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.aggregates import Output

MOST_DIGITS = 38


def summed(kind: pa.DataType, output: Output) -> pa.DataType:
    """The type of a sum: as in Spark, wide enough for many."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(kind.precision + 10, MOST_DIGITS), kind.scale)
    raise DefinitionError(
        f"aggregate.{output.name}",
        f"the field is of type {kind}, which has no sum",
        "Name a field of numbers",
    )


def compared(kind: pa.DataType, output: Output) -> pa.DataType:
    """The same type, if its values can be told apart and put in order."""
    if pa.types.is_nested(kind):
        raise DefinitionError(
            f"aggregate.{output.name}",
            f"the field is of type {kind}, whose values have no order",
            "Name a field of a simple type, or take one out of it in a step before",
        )
    return kind


def kept(kind: pa.DataType, output: Output) -> pa.DataType:
    """The same type, if its values can be told apart: of a list each value is compared."""
    inner = kind
    while pa.types.is_list(inner):
        inner = inner.value_type
    compared(inner, output)
    return kind


def carried(kind: pa.DataType, field: str, input_: str) -> pa.DataType:
    """The same type, if a row of a join can have it: of a list each value is compared."""
    inner = kind
    while pa.types.is_list(inner):
        inner = inner.value_type
    if pa.types.is_nested(inner):
        raise DefinitionError(
            "join.take",
            f"{input_}.{field} is of type {kind}, whose values cannot be told apart",
            "Take a field of a simple type or a list of them, or make one of it in a step before",
        )
    return kind


def measured(kind: pa.DataType, output: Output) -> pa.DataType:
    """The same type, if a value can lie anywhere between two others."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if number or pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return kind
    raise DefinitionError(
        f"aggregate.{output.name}",
        f"the field is of type {kind}, which has no quantiles",
        "Name a field of numbers, dates or timestamps",
    )
