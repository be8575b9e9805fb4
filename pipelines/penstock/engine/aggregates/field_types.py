"""Field types that each aggregate accepts."""

import pyarrow as pa

from penstock.engine.errors import DefinitionError
from penstock.engine.plan.aggregates import AggregateOutput

MAX_DECIMAL_DIGITS = 38


def resolve_sum_type(field_type: pa.DataType, output: AggregateOutput) -> pa.DataType:
    """Return the type of a sum, widened as in Spark."""
    if pa.types.is_integer(field_type):
        return pa.int64()
    if pa.types.is_floating(field_type):
        return pa.float64()
    if pa.types.is_decimal(field_type):
        return pa.decimal128(min(field_type.precision + 10, MAX_DECIMAL_DIGITS), field_type.scale)
    raise DefinitionError(
        f"aggregate.{output.name}",
        f"the field has type {field_type}, which cannot be summed",
        "Use a numeric field",
    )


def require_comparable(field_type: pa.DataType, output: AggregateOutput) -> pa.DataType:
    """Return the type if its values are comparable and ordered."""
    if pa.types.is_nested(field_type):
        raise DefinitionError(
            f"aggregate.{output.name}",
            f"the field has type {field_type}, whose values have no order",
            "Use a field of a simple type, or extract one in an earlier step",
        )
    return field_type


def require_comparable_elements(field_type: pa.DataType, output: AggregateOutput) -> pa.DataType:
    """Return the type if its values are comparable. Lists compare by their values."""
    element_type = field_type
    while pa.types.is_list(element_type):
        element_type = element_type.value_type
    require_comparable(element_type, output)
    return field_type


def require_joinable(field_type: pa.DataType, field: str, input_: str) -> pa.DataType:
    """Return the type if a joined row can contain it. Lists compare by their values."""
    element_type = field_type
    while pa.types.is_list(element_type):
        element_type = element_type.value_type
    if pa.types.is_nested(element_type):
        raise DefinitionError(
            "join.take",
            f"{input_}.{field} has type {field_type}, whose values cannot be compared",
            "Use a field of a simple type or a list of them, or extract one in an earlier step",
        )
    return field_type


def require_measurable(field_type: pa.DataType, output: AggregateOutput) -> pa.DataType:
    """Return the type if its values can be interpolated."""
    is_number = (
        pa.types.is_integer(field_type) or pa.types.is_floating(field_type) or pa.types.is_decimal(field_type)
    )
    if is_number or pa.types.is_timestamp(field_type) or pa.types.is_date32(field_type):
        return field_type
    raise DefinitionError(
        f"aggregate.{output.name}",
        f"the field has type {field_type}, which has no quantiles",
        "Use a field of numbers, dates or timestamps",
    )
