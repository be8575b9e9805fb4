"""Python types of records: one cached msgspec structure for each contract."""

from functools import cache
from typing import Any

import msgspec

from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.record_rules import RecordRules, to_record_rules


@cache
def record_type(contract: Contract) -> type[msgspec.Struct]:
    """Return the structure of a contract's records."""
    name = f"{contract.topic.title().replace('-', '').replace('.', '')}Record"
    return build_record_type(name, to_record_rules(contract))


def build_record_type(name: str, rules: RecordRules) -> type[msgspec.Struct]:
    """Return a structure that decodes the valid records of these rules."""
    return msgspec.defstruct(
        name,
        [_to_struct_member(item, item.required or item.name == rules.event_time) for item in rules.fields],
        forbid_unknown_fields=rules.unknown_fields == "refuse",
        omit_defaults=True,
        kw_only=True,
        gc=False,
    )


def _to_struct_member(item: ContractField, is_required: bool) -> tuple[str, Any] | tuple[str, Any, None]:
    annotation = item.parsed_type.annotation
    return (item.name, annotation) if is_required else (item.name, annotation | None, None)
