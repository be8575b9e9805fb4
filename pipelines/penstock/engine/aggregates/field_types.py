"""Field types that aggregates accept."""

from collections.abc import Collection, Mapping

import pyarrow as pa

from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.sql_arrow_types import MAX_DECIMAL_DIGITS
from penstock.engine.definition.sql_type_names import base_type
from penstock.engine.errors import DefinitionError


def refuse_column_types(
    field: str,
    column_types: Mapping[str, str | None],
    refused: Collection[str],
    operation: str,
    location: str,
) -> None:
    """Refuse a field that is known to have one of these SQL types, which have no such operation."""
    field_type = column_types.get(field) or ""
    problem = f"{field!r} is {field_type}, which has no {operation}"
    require(base_type(field_type) not in refused, location, problem, "Name a numeric field")


def resolve_sum_type(field: str, context: AggregateContext) -> pa.DataType:
    """Return the type of the field's sum, widened as in Spark."""
    field_type = context.field_types[field]
    if pa.types.is_integer(field_type):
        return pa.int64()
    if pa.types.is_floating(field_type):
        return pa.float64()
    if pa.types.is_decimal(field_type):
        return pa.decimal128(min(field_type.precision + 10, MAX_DECIMAL_DIGITS), field_type.scale)
    raise context.error(f"the field has type {field_type}, which cannot be summed", "Use a numeric field")


def require_comparable(field: str, context: AggregateContext) -> pa.DataType:
    """Return the field's type if its values are comparable and ordered."""
    _refuse_unordered(context.field_types[field], context)
    return context.field_types[field]


def require_comparable_elements(field: str, context: AggregateContext) -> pa.DataType:
    """Return the field's type if its values are comparable. Lists compare by their values."""
    _refuse_unordered(_element_type(context.field_types[field]), context)
    return context.field_types[field]


def require_joinable(field: str, input_: str, context: AggregateContext) -> pa.DataType:
    """Return the field's type if a joined row can contain it. Lists compare by their values."""
    field_type = context.field_types[field]
    if pa.types.is_nested(_element_type(field_type)):
        raise DefinitionError(
            "join.take",
            f"{input_}.{field} has type {field_type}, whose values cannot be compared",
            "Use a field of a simple type or a list of them, or extract one in an earlier step",
        )
    return field_type


def require_measurable(field: str, context: AggregateContext) -> pa.DataType:
    """Return the field's type if its values can be interpolated."""
    field_type = context.field_types[field]
    is_number = (
        pa.types.is_integer(field_type) or pa.types.is_floating(field_type) or pa.types.is_decimal(field_type)
    )
    if is_number or pa.types.is_timestamp(field_type) or pa.types.is_date32(field_type):
        return field_type
    raise context.error(
        f"the field has type {field_type}, which has no quantiles",
        "Use a field of numbers, dates or timestamps",
    )


def _element_type(field_type: pa.DataType) -> pa.DataType:
    while pa.types.is_list(field_type):
        field_type = field_type.value_type
    return field_type


def _refuse_unordered(value_type: pa.DataType, context: AggregateContext) -> None:
    if pa.types.is_nested(value_type):
        raise context.error(
            f"the field has type {value_type}, whose values have no order",
            "Use a field of a simple type, or extract one in an earlier step",
        )
