"""Keys beside `type` that complete a type in a contract: `format` and `timezone`."""

import re
from collections.abc import Mapping
from typing import Any

from penstock.ingestion.contracts.field_types.type_discovery import parse_type
from penstock.ingestion.errors import ContractError

TYPE_KEYS: Mapping[str, Any] = {"format": str, "timezone": str}


def compose_type(values: Mapping[str, Any]) -> str:
    """Return the text of a field's type with its other keys as arguments.

    >>> compose_type({"type": "array<timestamp>", "format": "iso8601"})
    'array<timestamp(iso8601)>'
    """
    text = values["type"]
    if "timezone" in values and "format" not in values:
        raise ContractError("'timezone' needs 'format: iso8601'. Add it, or remove the timezone.")
    if "format" in values:
        arguments = ", ".join(values[key] for key in ("format", "timezone") if key in values)
        text = _complete(text, "timestamp", arguments, "format")
    return str(parse_type(text))


def _complete(text: str, keyword: str, arguments: str, key: str) -> str:
    """Return a type with these arguments for the keyword that it contains."""
    completed, count = re.subn(rf"\b{keyword}\b(?![(<])", f"{keyword}({arguments})", text)
    if count != 1:
        raise ContractError(f"'{key}' belongs to the type {keyword}, but the type is {text}. Remove '{key}'.")
    return completed
