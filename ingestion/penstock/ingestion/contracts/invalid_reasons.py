"""Why a record is invalid: the codes to count by, and the details for people.

A reason is a code, and for a field its path: `wrong_type:amount`, `missing_field:address.city`. The items of an
array share a reason, `wrong_type:items[].price`; the detail names the item. Producers and streams use these.

| code | meaning |
|---|---|
| `malformed` | the value is no JSON object, no event of Debezium, or no Avro or Protobuf of its schema |
| `invalid_utf8` | text is not UTF-8 |
| `nested_too_deeply` | arrays or objects are nested too deeply to be read |
| `too_large` | key and value together exceed `max_bytes` of the contract |
| `wrong_schema` | a value names a schema that is not registered for the topic, or that the contract cannot read |
| `missing_field:F` | a required field is absent or null |
| `wrong_type:F` | the value of a field has another type |
| `out_of_range:F` | a number is beyond the range of its type |
| `event_time_out_of_range` | the event time is outside of the years 1 to 9999 |
| `unknown_operation` | an event of Debezium is of no changed row: its `op` is none of c, r, u, d |
| `unknown_field:F` | the contract has no such field, and refuses unknown ones |
"""

import re
from typing import Literal, TypeAlias

import msgspec

from penstock.ingestion.errors import InvalidRecordError

ReasonCode: TypeAlias = Literal[
    "malformed",
    "invalid_utf8",
    "nested_too_deeply",
    "too_large",
    "wrong_schema",
    "missing_field",
    "wrong_type",
    "out_of_range",
    "event_time_out_of_range",
    "unknown_operation",
    "unknown_field",
]
MAX_FOUND_CHARS = 60
MAX_PATH_CHARS = 100
_JSON_KINDS = {"{": "an object", "[": "an array", "t": "a boolean", "f": "a boolean", "n": "null"}
_INDEX = re.compile(r"\[[^\]]*\]")


def make_invalid_record(code: ReasonCode, detail: str, path: str = "") -> InvalidRecordError:
    """Return the error for a record; `path` names the field, as in `address.city` or `items[3].price`."""
    printable_path = "".join(char if char.isprintable() else "?" for char in path)[:MAX_PATH_CHARS]
    if not path or code == "event_time_out_of_range":
        return InvalidRecordError(code, detail)
    reason_path = _INDEX.sub("[]", printable_path)
    return InvalidRecordError(
        f"{code}:{reason_path}", detail if reason_path == printable_path else f"{printable_path}: {detail}"
    )


def describe_size(size_bytes: int, max_bytes: int) -> InvalidRecordError:
    """Return the error for a record that is too large."""
    return make_invalid_record(
        "too_large", f"{size_bytes} bytes including the key; the contract allows {max_bytes}"
    )


def describe_found(raw: bytes, *, is_personal: bool) -> str:
    """Return the JSON text of a value for a detail, shortened; of a personal one, only its kind and length.

    >>> describe_found(b'"12.5"', is_personal=False), describe_found(b'"Ada Lovelace"', is_personal=True)
    ('"12.5"', 'a string of 12 characters')
    """
    text = " ".join(raw.decode("utf-8", "replace").split())
    if not is_personal:
        return text if len(text) <= MAX_FOUND_CHARS else f"{text[:MAX_FOUND_CHARS]}…"
    if text.startswith('"'):
        return f"a string of {_count_characters(raw)} characters"
    return _JSON_KINDS.get(text[:1], "a number")


def _count_characters(raw: bytes) -> int:
    try:
        return len(msgspec.json.decode(raw, type=str))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return len(raw) - 2
