"""Which types of a field an aggregate can be of."""

import pyarrow as pa

from penstock.engine.errors import DefinitionError
from penstock.engine.plan.aggregates import AggregateOutput

MAX_DECIMAL_DIGITS = 38


def resolve_sum_type(field_type: pa.DataType, output: AggregateOutput) -> pa.DataType:
    """The type of a sum: as in Spark, wide enough for many."""
    if pa.types.is_integer(field_type):
        return pa.int64()
    if pa.types.is_floating(field_type):
        return pa.float64()
    if pa.types.is_decimal(field_type):
        return pa.decimal128(min(field_type.precision + 10, MAX_DECIMAL_DIGITS), field_type.scale)
    raise DefinitionError(
        f"aggregate.{output.name}",
        f"the field is of type {field_type}, which has no sum",
        "Name a field of numbers",
    )


def require_comparable(field_type: pa.DataType, output: AggregateOutput) -> pa.DataType:
    """The same type, if its values can be told apart and put in order."""
    if pa.types.is_nested(field_type):
        raise DefinitionError(
            f"aggregate.{output.name}",
            f"the field is of type {field_type}, whose values have no order",
            "Name a field of a simple type, or take one out of it in a step before",
        )
    return field_type


def require_comparable_elements(field_type: pa.DataType, output: AggregateOutput) -> pa.DataType:
    """The same type, if its values can be told apart: of a list each value is compared."""
    element_type = field_type
    while pa.types.is_list(element_type):
        element_type = element_type.value_type
    require_comparable(element_type, output)
    return field_type


def require_joinable(field_type: pa.DataType, field: str, input_: str) -> pa.DataType:
    """The same type, if a row of a join can have it: of a list each value is compared."""
    element_type = field_type
    while pa.types.is_list(element_type):
        element_type = element_type.value_type
    if pa.types.is_nested(element_type):
        raise DefinitionError(
            "join.take",
            f"{input_}.{field} is of type {field_type}, whose values cannot be told apart",
            "Take a field of a simple type or a list of them, or make one of it in a step before",
        )
    return field_type


def require_measurable(field_type: pa.DataType, output: AggregateOutput) -> pa.DataType:
    """The same type, if a value can lie anywhere between two others."""
    is_number = (
        pa.types.is_integer(field_type) or pa.types.is_floating(field_type) or pa.types.is_decimal(field_type)
    )
    if is_number or pa.types.is_timestamp(field_type) or pa.types.is_date32(field_type):
        return field_type
    raise DefinitionError(
        f"aggregate.{output.name}",
        f"the field is of type {field_type}, which has no quantiles",
        "Name a field of numbers, dates or timestamps",
    )
