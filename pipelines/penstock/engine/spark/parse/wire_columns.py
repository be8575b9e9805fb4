"""How the columns of an input are read from JSON and Avro, and converted to their stored values."""

from penstock.engine.definition.predicates import quote_column
from penstock.engine.plan.sources import Column, PlanSource
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.field_types.type_discovery import parse_spark_type, parse_type
from penstock.ingestion.errors import ContractError

CORRUPT_COLUMN = "_corrupt"


def find_field_type(column: Column) -> FieldType | None:
    """Return the contract's type of a column; None if a contract cannot have it, as for some published results."""
    if column.field_type is not None:
        return parse_type(column.field_type)
    try:
        return parse_spark_type(column.type)
    except ContractError:
        return None


def find_column_type(column: Column) -> FieldType:
    """Return the contract's type of a column; raise ContractError if a contract cannot have it."""
    return parse_type(column.field_type) if column.field_type else parse_spark_type(column.type)


def json_type(column: Column) -> str:
    """Return the type with which `from_json` reads a column."""
    field_type = find_field_type(column)
    return column.type if field_type is None else field_type.json_ddl


def parsed_record_ddl(source: PlanSource) -> str:
    """Return the DDL of a record that was read from JSON; the last column is null unless it is malformed."""
    fields = (f"{quote_column(column.name)} {json_type(column)}" for column in source.record_columns)
    return ", ".join((*fields, f"{CORRUPT_COLUMN} STRING"))


def json_value_sql(column: Column, record_column: str) -> str:
    """Return SQL for the stored value in a record that `from_json` read."""
    wire_value = _read_sql(column, record_column)
    field_type = find_field_type(column)
    return wire_value if field_type is None else field_type.value_sql(wire_value)


def avro_value_sql(column: Column, record_column: str) -> str:
    """Return SQL for the stored value in a record that `from_avro` read."""
    wire_value = _read_sql(column, record_column)
    field_type = find_field_type(column)
    return wire_value if field_type is None else field_type.avro_value_sql(wire_value)


def wire_sql(column: Column, stored: str) -> str:
    """Return SQL for the wire value of a stored one."""
    field_type = find_field_type(column)
    return stored if field_type is None else field_type.wire_sql(stored)


def _read_sql(column: Column, record_column: str) -> str:
    """Return SQL that reads a field of a record, or a member of a struct."""
    steps = column.name.split(".") if column.is_member else [column.name]
    return ".".join((record_column, *map(quote_column, steps)))
