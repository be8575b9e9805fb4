"""Finds the formats of records by their keywords."""

from inspect import isabstract
from typing import Any

from penstock.core.errors import UnknownKindError
from penstock.core.kind_registry import KindRegistry
from penstock.core.names import suggest_name
from penstock.ingestion.contracts.record_formats.record_format import RecordFormat
from penstock.ingestion.errors import ContractError


def _is_record_format(member: Any) -> bool:
    return isinstance(member, type) and issubclass(member, RecordFormat) and not isabstract(member)


RECORD_FORMATS: KindRegistry[type[RecordFormat]] = KindRegistry(
    noun="encoding",
    packages=("penstock.ingestion.contracts.record_formats",),
    entry_point_group="penstock.record_formats",
    name_kind=lambda member: (member.keyword or None) if _is_record_format(member) else None,
    is_kind=_is_record_format,
    how_to_define="Derive the class from RecordFormat, and define `keyword` and its methods.",
)


def find_record_format(encoding: str) -> RecordFormat:
    """Return the format with this keyword; raise ContractError if there is none."""
    try:
        return RECORD_FORMATS.find_kind(encoding)()
    except UnknownKindError as error:
        names = ", ".join(RECORD_FORMATS.kinds_by_name)
        hint = suggest_name(encoding, RECORD_FORMATS.kinds_by_name)
        detail = f" {error}." if ":" in encoding else ""
        raise ContractError(
            f"has an unknown encoding '{encoding}'.{hint}{detail} Use one of {names}"
        ) from None
