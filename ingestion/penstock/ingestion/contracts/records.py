"""A contract's records as Python types: a msgspec structure per contract, made once."""

from functools import cache
from types import GenericAlias
from typing import Annotated, Any

import msgspec

from penstock.ingestion.contracts.model import Contract, Field
from penstock.ingestion.contracts.types import FieldType

# Years 1 to 9999: what Python, Spark and Delta can all hold.
_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
_ANNOTATIONS: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    "int": Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    "long": Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    "float": float,
    "double": float,
    "timestamp": Annotated[int, msgspec.Meta(ge=_EARLIEST_MS, le=_LATEST_MS)],
}


@cache
def record_type(contract: Contract) -> type[msgspec.Struct]:
    """Return the structure of a contract's records; unknown fields are refused."""
    return msgspec.defstruct(
        f"{contract.topic.title().replace('-', '').replace('.', '')}Record",
        [_member(item) for item in contract.fields],
        forbid_unknown_fields=True,
        omit_defaults=True,
        kw_only=True,
        gc=False,
    )


def _member(item: Field) -> tuple[str, Any] | tuple[str, Any, None]:
    annotation = _annotation(item.kind)
    return (item.name, annotation) if item.required else (item.name, annotation | None, None)


def _annotation(kind: FieldType) -> Any:
    return _ANNOTATIONS[kind.name] if kind.item is None else GenericAlias(list, (_annotation(kind.item),))
