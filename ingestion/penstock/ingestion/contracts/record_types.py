"""Python types of records: one cached msgspec structure for each contract."""

from functools import cache
from types import GenericAlias
from typing import Annotated, Any

import msgspec

from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.field_types import FieldType

# Years 1 to 9999: the range that Python, Spark and Delta all support.
_MIN_TIMESTAMP_MS, _MAX_TIMESTAMP_MS = -62_135_596_800_000, 253_402_300_799_999
_SCALAR_ANNOTATIONS: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    "int": Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    "long": Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    "float": float,
    "double": float,
    "timestamp": Annotated[int, msgspec.Meta(ge=_MIN_TIMESTAMP_MS, le=_MAX_TIMESTAMP_MS)],
}


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
    annotation = _to_annotation(item.parsed_type)
    return (item.name, annotation) if item.required else (item.name, annotation | None, None)


def _to_annotation(field_type: FieldType) -> Any:
    return (
        _SCALAR_ANNOTATIONS[field_type.name]
        if field_type.item_type is None
        else GenericAlias(list, (_to_annotation(field_type.item_type),))
    )
