"""Arrays, maps and structs in rows of text, such as CSV: the text of a cell is JSON."""

from typing import Any

import msgspec


def parse_json_cell(value: Any) -> Any:
    """Return the JSON array or object in text; other values unchanged, for validation."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value
