"""The rules by which the records of an input are judged, from the plan."""

from collections.abc import Sequence
from dataclasses import replace

from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.spark.parse.wire_columns import find_field_type
from penstock.ingestion.contracts import ContractField
from penstock.ingestion.contracts.contract_modes import UNKNOWN_FIELDS_COLUMN
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.field_types.type_discovery import parse_type
from penstock.ingestion.contracts.record_rules import RecordRules


def declared_columns(source: PlanSource) -> Sequence[Column]:
    """Return the columns that are fields of the record, without those that the engine adds."""
    added = {source.tombstones.column} if source.tombstones else set()
    if source.unknown_fields == "keep":
        added.add(UNKNOWN_FIELDS_COLUMN)
    return [column for column in source.record_columns if column.name not in added]


def find_declared_type(column: Column) -> FieldType | None:
    """Return the type that the contract declares, or one that a stored plan implies; None if it has none."""
    return find_field_type(column) if column.declared_type is None else parse_type(column.declared_type)


def build_record_rules(source: PlanSource) -> RecordRules | None:
    """Return the rules of an input; None if a column has a type that no contract can have."""
    columns = declared_columns(source)
    types = [find_declared_type(column) for column in columns]
    fields = tuple(
        ContractField(column.name, str(field_type), "", column.required, column.personal)
        for column, field_type in zip(columns, types, strict=True)
    )
    if None in types:
        return None
    personal_fields = frozenset(column.name for column in columns if column.personal)
    rules = RecordRules(fields, source.event_time, source.unknown_fields, personal_fields)
    origin = source.origin
    if not isinstance(origin, TopicOrigin):
        return rules
    return replace(rules, encoding=origin.encoding, deletes=origin.deletes, envelope=origin.envelope)
