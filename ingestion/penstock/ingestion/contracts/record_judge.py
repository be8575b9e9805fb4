"""The judge of records: whether a record is valid, its values, or the reason why it is invalid.

Producers and HTTP push judge each record with it. A stream judges with it the records that Spark cannot prove
valid. So a record has one verdict, one reason and one value everywhere.

If a JSON member occurs more than once, the last one counts. The first field of the contract that has a problem
gives the reason, whatever the order of members is.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from penstock.core.names import suggest_name
from penstock.ingestion.contracts.contract_modes import UNKNOWN_FIELDS_COLUMN
from penstock.ingestion.contracts.field_judge import FieldJudge, describe_decode_error
from penstock.ingestion.contracts.invalid_reasons import make_invalid_record
from penstock.ingestion.contracts.record_rules import RecordRules
from penstock.ingestion.contracts.record_types import build_record_type

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The errors of `RecordJudge.decode_valid`."""

_split_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class RecordJudge:
    """Judges records by their rules."""

    def __init__(self, rules: RecordRules, record_type: type[msgspec.Struct] | None = None) -> None:
        self.rules = rules
        self.record_type = record_type or build_record_type("Record", rules)
        self._decode_typed = msgspec.json.Decoder(self.record_type).decode
        self._field_judges = {
            field.name: FieldJudge(
                field,
                is_event_time=field.name == rules.event_time,
                is_personal=field.name in rules.personal_fields,
            )
            for field in rules.fields
        }

        self._fault_finders = [
            (name, judge.fault_finder)
            for name, judge in self._field_judges.items()
            if judge.fault_finder is not None
        ]

    def decode_valid(self, value: bytes) -> msgspec.Struct:
        """Decode a valid record at full speed. If it raises one of DECODE_ERRORS, `decode` has the last word."""
        record = self._decode_typed(value)
        self._check_faults(record)
        return record

    def decode(self, value: bytes) -> msgspec.Struct:
        """Return the decoded record; raise InvalidRecordError if it is invalid."""
        try:
            return self.decode_valid(value)
        except DECODE_ERRORS:
            members = self._read_members(value)
            return self.record_type(
                **{
                    name: judge.decode(members[name])
                    for name, judge in self._field_judges.items()
                    if name in members
                }
            )

    def convert(self, row: Mapping[str, Any], *, strict: bool = True) -> msgspec.Struct:
        """Convert a mapping to a record; raise InvalidRecordError. Unless `strict`, text may hold a number."""
        try:
            record = msgspec.convert(row, self.record_type, strict=strict)
            self._check_faults(record)
            return record
        except DECODE_ERRORS as error:
            for name, judge in self._field_judges.items():
                judge.check_value(row.get(name), is_present=name in row, strict=strict)
            self._refuse_unknown(row)
            raise describe_decode_error(error) from error

    def to_canonical_json(self, value: bytes) -> bytes:
        """Return a valid record with each declared field once and nothing else; raise InvalidRecordError.

        Values are written as Spark reads them. Unknown fields that are to be kept are in UNKNOWN_FIELDS_COLUMN.
        """
        try:
            self.decode_valid(value)
            members = _split_valid(value)
        except DECODE_ERRORS:
            members = self._read_members(value)
        declared = {
            name: judge.to_canonical(members[name])
            for name, judge in self._field_judges.items()
            if name in members
        }
        if self.rules.unknown_fields == "keep":
            unknown = {name: raw for name, raw in members.items() if name not in self._field_judges}
            if unknown:
                text = msgspec.json.encode(unknown).decode("utf-8", "replace")
                declared[UNKNOWN_FIELDS_COLUMN] = msgspec.Raw(msgspec.json.encode(text))
        # What is not UTF-8 now is in members of structs that are ignored.
        return msgspec.json.encode(declared).decode("utf-8", "replace").encode()

    def _read_members(self, value: bytes) -> dict[str, msgspec.Raw]:
        """Return the members of a valid record; raise InvalidRecordError."""
        try:
            members = _split_members(value)
        except DECODE_ERRORS as error:
            raise describe_decode_error(error) from error
        for name, judge in self._field_judges.items():
            if name not in members and judge.is_required:
                raise make_invalid_record("missing_field", self._describe_missing(name, members), name)
            judge.check_member(members.get(name))
        self._refuse_unknown(members)
        return members

    def _check_faults(self, record: msgspec.Struct) -> None:
        """Raise ValidationError if a value is not what its type allows, although its annotation does."""
        for name, find_fault in self._fault_finders:
            value = getattr(record, name)
            if value is not None and find_fault(value) is not None:
                raise msgspec.ValidationError(name)

    def _refuse_unknown(self, members: Mapping[str, Any]) -> None:
        if self.rules.unknown_fields != "refuse":
            return
        for name in members:
            if name not in self._field_judges:
                detail = f"the contract has no such field.{suggest_name(name, self._field_judges)}".rstrip(
                    "."
                )
                raise make_invalid_record("unknown_field", detail, name)

    def _describe_missing(self, name: str, members: Mapping[str, Any]) -> str:
        unknown = [other for other in members if other not in self._field_judges]
        return f"the record has no such field.{suggest_name(name, unknown)}".rstrip(".")


def _split_valid(value: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of a valid record, in which names of unknown fields may not be UTF-8."""
    try:
        return _split_members(value)
    except UnicodeDecodeError:
        return _split_members(value.decode("utf-8", "replace").encode())


@cache
def record_judge(rules: RecordRules) -> RecordJudge:
    """Return the cached judge of these rules."""
    return RecordJudge(rules)
