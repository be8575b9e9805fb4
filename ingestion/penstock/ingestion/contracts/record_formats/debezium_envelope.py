"""The envelope of Debezium: reading a record from it, and writing one.

    {"before": {...}, "after": {...}, "op": "u", "source": {"ts_ms": 1, ...}, "ts_ms": 2}

With a `schema` part, this is the member `payload`. MongoDB's connector has the rows as text with JSON.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from penstock.ingestion.contracts.field_judge import describe_decode_error
from penstock.ingestion.contracts.invalid_reasons import make_invalid_record
from penstock.ingestion.contracts.record_judge import DECODE_ERRORS
from penstock.ingestion.contracts.record_rules import RecordRules
from penstock.ingestion.errors import IgnoredRecordError

ENVELOPE_PARTS = ("op", "deleted", "before", "ts_ms", "ts_us", "ts_ns", "transaction")
"""What a field can name, beside members of `source`; `deleted` is whether `op` is d."""
_SOURCE = "source"
_OTHER_MEMBERS = ("after", _SOURCE)
_WRAPPER_MEMBERS = ("schema", "payload")
_NULL = b"null"

ChangeOperation: TypeAlias = Literal["c", "r", "u", "d"]
"""A row was created, read by a snapshot, updated or deleted."""
_Members: TypeAlias = Mapping[str, msgspec.Raw]
_split_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def is_envelope_path(path: str) -> bool:
    """Return whether an envelope can have this part."""
    first, *rest = path.split(".")
    return path in ENVELOPE_PARTS or (first == _SOURCE and len(rest) == 1 and bool(rest[0]))


class EnvelopeReader:
    """Makes the JSON of a record from an envelope."""

    def __init__(self, rules: RecordRules) -> None:
        self._keeps_deletes = rules.deletes == "keep"
        self._paths = {name: path.split(".") for name, path in rules.envelope}

    def read_json(self, value: bytes) -> bytes:
        """Return the JSON of a record; raise InvalidRecordError or IgnoredRecordError."""
        try:
            return self._read_record(value)
        except DECODE_ERRORS as error:
            raise describe_decode_error(error) from error

    def _read_record(self, value: bytes) -> bytes:
        envelope = _split_members(value)
        if "payload" in envelope and "op" not in envelope:
            if bytes(envelope["payload"]) == _NULL:
                raise IgnoredRecordError("the event has no payload: it follows the event of a deleted row")
            envelope = _split_members(envelope["payload"])
        if "op" not in envelope:
            raise make_invalid_record("malformed", "the value has no 'op', so it is no event of Debezium")
        operation = msgspec.json.decode(envelope["op"], type=str)
        row = self._find_row(operation, envelope)
        if not self._paths:
            return row
        members: dict[str, object] = dict(_split_members(row))
        for name, path in self._paths.items():
            members.pop(name, None)
            if (part := _find_part(envelope, path, operation)) is not None:
                members[name] = part
        return msgspec.json.encode(members)

    def _find_row(self, operation: str, envelope: _Members) -> bytes:
        match operation:
            case "c" | "r" | "u":
                return _read_row(envelope, "after")
            case "d" if self._keeps_deletes:
                return _read_row(envelope, "before")
            case "d":
                raise IgnoredRecordError("the contract ignores events of deleted rows")
        detail = f"op is {operation[:10]!r}; a changed row has one of c, r, u, d"
        raise make_invalid_record("unknown_operation", detail)


def _read_row(envelope: _Members, side: Literal["before", "after"]) -> bytes:
    row = bytes(envelope.get(side, msgspec.Raw(_NULL)))
    if row == _NULL:
        raise make_invalid_record("missing_field", "the event has no such row", side)
    # MongoDB's connector writes the document as text.
    return msgspec.json.decode(row, type=str).encode() if row.startswith(b'"') else row


def _find_part(envelope: _Members, path: Sequence[str], operation: str) -> object:
    """Return the JSON of a part of the envelope, or None."""
    if path == ["deleted"]:
        return operation == "d"
    part = envelope.get(path[0])
    for step in path[1:]:
        part = None if part is None or bytes(part) == _NULL else _split_members(part).get(step)
    return part


def is_envelope(value: bytes) -> bool:
    """Return whether a value is an envelope and not the plain JSON of a row."""
    if b'"op"' not in value:
        return False
    try:
        names = set(_split_members(value))
    except DECODE_ERRORS:
        return False
    if names <= set(_WRAPPER_MEMBERS):
        return True
    return "op" in names and names <= {*ENVELOPE_PARTS, *_OTHER_MEMBERS}


def write_envelope(members: _Members, paths: Mapping[str, str]) -> bytes:
    """Return the envelope of a record; `paths` are those of its fields that are no columns of the row."""
    row = {name: part for name, part in members.items() if name not in paths}
    parts = {path: members[name] for name, path in paths.items() if name in members}
    source = {
        path.removeprefix(f"{_SOURCE}."): parts.pop(path) for path in list(parts) if path.startswith(_SOURCE)
    }
    is_deleted = bytes(parts.pop("deleted", msgspec.Raw(b"false"))) == b"true"
    operation = parts.pop("op", msgspec.Raw(b'"d"' if is_deleted else b'"c"'))
    before, after = (row, None) if bytes(operation) == b'"d"' else (parts.pop("before", None), row)
    return msgspec.json.encode({"before": before, "after": after, _SOURCE: source, "op": operation, **parts})
