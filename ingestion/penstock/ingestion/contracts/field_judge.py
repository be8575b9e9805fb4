"""Judges the value of one field, and says what is wrong with it."""

import re
from typing import Any

import msgspec

from penstock.ingestion.contracts.contract import ContractField
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.invalid_reasons import ReasonCode, describe_found, make_invalid_record
from penstock.ingestion.errors import InvalidRecordError

_PATH = re.compile(r"(?: - at (?:key in )?`\$(?P<path>.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_BOUND = re.compile(r"Expected `\w+` (<=|>=) (\S+)")
_MISSING = re.compile(r"missing required field `(.+?)`")
_UNKNOWN = re.compile(r"unknown field `(.+?)`")
_OUT_OF_RANGE = "out of range"


class FieldJudge:
    """Judges the values of one field."""

    def __init__(self, field: ContractField, *, is_event_time: bool, is_personal: bool) -> None:
        self._name = field.name
        self._type = field.parsed_type
        self._is_event_time = is_event_time
        self._is_personal = is_personal
        self.is_required = field.required or is_event_time
        self._annotation = self._type.annotation if self.is_required else self._type.annotation | None
        self.decode = msgspec.json.Decoder(self._annotation).decode
        self.fault_finder = self._type.fault_finder

    def check_member(self, raw: msgspec.Raw | None) -> None:
        """Raise InvalidRecordError if the JSON of the field is invalid."""
        if raw is None:
            return
        try:
            value = self.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._describe(error, raw) from error
        self._refuse_fault(value, raw)

    def to_canonical(self, raw: msgspec.Raw) -> msgspec.Raw:
        """Return the JSON of a valid value as Spark reads it."""
        convert = self._type.json_converter
        value = None if convert is None else self.decode(raw)
        return raw if convert is None or value is None else msgspec.Raw(msgspec.json.encode(convert(value)))

    def check_value(self, value: Any, *, is_present: bool, strict: bool) -> None:
        """Raise InvalidRecordError if the value of the field in a row is invalid."""
        if not is_present:
            if self.is_required:
                raise make_invalid_record("missing_field", "the record has no such field", self._name)
            return
        try:
            converted = msgspec.convert(value, self._annotation, strict=strict)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._describe(error, _to_raw(value)) from error
        self._refuse_fault(converted, _to_raw(value))

    def _refuse_fault(self, value: Any, raw: msgspec.Raw) -> None:
        """Raise InvalidRecordError for a value that only the type refuses, not its annotation."""
        fault = None if self.fault_finder is None or value is None else self.fault_finder(value)
        if fault is None:
            return
        found_text = describe_found(bytes(raw), is_personal=self._is_personal)
        detail = f"expected {self._type.expectation}, found {found_text}"
        raise make_invalid_record(
            "wrong_type", detail if self._is_personal else f"{detail}: {fault}", self._name
        )

    def _describe(self, error: Exception, raw: msgspec.Raw) -> InvalidRecordError:
        if isinstance(error, UnicodeDecodeError):
            return make_invalid_record("invalid_utf8", _describe_byte(error), self._name)
        if isinstance(error, RecursionError) or not isinstance(error, msgspec.ValidationError):
            return describe_decode_error(error, self._name)
        message = str(error)
        path = _PATH.search(message)
        steps = (path["path"] if path else None) or ""
        part, found = _find_part(self._type, raw, steps)
        path_text = f"{self._name}{steps}"
        if missing := _MISSING.search(message):
            return make_invalid_record(
                "missing_field", "the record has no such field", f"{path_text}.{missing[1]}"
            )
        if unknown := _UNKNOWN.search(message):
            return make_invalid_record(
                "unknown_field", "the type has no such field", f"{path_text}.{unknown[1]}"
            )
        if found == b"null" and not steps:
            return make_invalid_record("missing_field", "found null", path_text)
        code, expected = self._classify(message, part)
        found_text = describe_found(found, is_personal=self._is_personal)
        fix = part.suggest_fix(_to_python(found))
        detail = f"expected {expected}, found {found_text}{f'; {fix}' if fix else ''}"
        return make_invalid_record(code, detail, path_text)

    def _classify(self, message: str, part: FieldType) -> tuple[ReasonCode, str]:
        """Return the reason for a value of the wrong type or size, and the expected type."""
        if bound := _BOUND.match(message):
            limit = f"{part.expectation} of at {'most' if bound[1] == '<=' else 'least'} {bound[2]}"
            return "event_time_out_of_range" if self._is_event_time else "out_of_range", limit
        if _OUT_OF_RANGE in message:
            return "out_of_range", part.expectation
        return "wrong_type", part.expectation


def describe_decode_error(error: Exception, path: str = "") -> InvalidRecordError:
    """Return the error for a value that cannot be read at all."""
    if isinstance(error, UnicodeDecodeError):
        return make_invalid_record("invalid_utf8", _describe_byte(error), path)
    if isinstance(error, RecursionError):
        return make_invalid_record("nested_too_deeply", "arrays or objects are nested too deeply", path)
    text = str(error).removeprefix("JSON is malformed: ")
    if isinstance(error, msgspec.ValidationError):
        text = text.lower().replace("`", "").replace("got", "found")
    return make_invalid_record("malformed", text, path)


def _describe_byte(error: UnicodeDecodeError) -> str:
    return f"byte 0x{error.object[error.start]:02x} at position {error.start} of the text: {error.reason}"


def _find_part(field_type: FieldType, raw: bytes, path: str) -> tuple[FieldType, bytes]:
    """Return the type and the JSON of the part of a value at a path; of the last part that exists."""
    for step in _STEP.finditer(path):
        part_type = field_type.find_part(step.group())
        members = msgspec.json.decode(raw, type=list[msgspec.Raw] | dict[str, msgspec.Raw])
        name, index = step.groups()
        if part_type is None or index == "..." or (index is None) == isinstance(members, list):
            break
        field_type, raw = (
            part_type,
            bytes(members[int(index)] if isinstance(members, list) else members[name]),
        )
    return field_type, bytes(raw)


def _to_python(raw: bytes) -> object:
    """Return the value of a JSON text; None if it cannot be read."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _to_raw(value: Any) -> msgspec.Raw:
    """Return a value of a row as JSON for a message."""
    try:
        return msgspec.Raw(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.Raw(msgspec.json.encode(f"{value}"))
