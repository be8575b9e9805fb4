"""Keys beside `type` that complete a type in a contract: `format`, `timezone`, `symbols` and `fields`."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.ingestion.contracts.field_types.type_discovery import parse_type
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.contract import ContractField

TYPE_KEYS: Mapping[str, Any] = {"format": str, "timezone": str, "symbols": list, "fields": list}


def compose_type(values: Mapping[str, Any], members: "Sequence[ContractField]" = ()) -> str:
    """Return the text of a field's type with its other keys as arguments. `members` are the parsed `fields`.

    >>> compose_type({"type": "array<timestamp>", "format": "iso8601"})
    'array<timestamp(iso8601)>'
    """
    text = values["type"]
    if "timezone" in values and "format" not in values:
        raise ContractError("'timezone' needs 'format: iso8601'. Add it, or remove the timezone.")
    if "format" in values:
        arguments = ", ".join(values[key] for key in ("format", "timezone") if key in values)
        text = _complete(text, "timestamp", f"({arguments})", "format")
    if "symbols" in values:
        text = _complete(text, "enum", f"({', '.join(map(str, values['symbols']))})", "symbols")
    if members:
        member_texts = (f"{field.name}{'' if field.required else '?'}: {field.type}" for field in members)
        text = _complete(text, "struct", f"<{', '.join(member_texts)}>", "fields")
    return str(parse_type(text))


def _complete(text: str, keyword: str, arguments: str, key: str) -> str:
    """Return a type with these arguments for the keyword that it contains."""
    completed, count = re.subn(rf"\b{keyword}\b(?![(<])", lambda _match: f"{keyword}{arguments}", text)
    if count != 1:
        raise ContractError(f"'{key}' belongs to the type {keyword}, but the type is {text}. Remove '{key}'.")
    return completed
