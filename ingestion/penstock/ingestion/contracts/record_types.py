"""Python types of records: one cached msgspec structure for each contract."""

from functools import cache
from typing import Any

import msgspec

from penstock.ingestion.contracts.contract import Contract, ContractField


@cache
def record_type(contract: Contract) -> type[msgspec.Struct]:
    """Return the structure of a contract's records. Decoding refuses unknown fields."""
    return msgspec.defstruct(
        f"{contract.topic.title().replace('-', '').replace('.', '')}Record",
        [_to_struct_member(item) for item in contract.fields],
        forbid_unknown_fields=True,
        omit_defaults=True,
        kw_only=True,
        gc=False,
    )


def _to_struct_member(item: ContractField) -> tuple[str, Any] | tuple[str, Any, None]:
    annotation = item.parsed_type.annotation
    return (item.name, annotation) if item.required else (item.name, annotation | None, None)
