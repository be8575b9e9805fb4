"""Whether a changed contract still reads what is there, and is still read by who is there.

*Backward*: the new contract reads records of the old one. *Forward*: the old one reads records of the new one.
*Full*: both. The rules are those of who reads. Avro's reader fills a missing field only where it may be absent,
ignores fields that it does not know, and reads a narrower number as a wider one. The reader of JSON refuses fields
that it does not know, and reads a whole number where every one of its kind lies in the range of the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.ingestion.contracts.contract import ContractField
from penstock.ingestion.contracts.field_types import CompatibilityMode, FieldType, RecordEncoding, parse_type

# What is written -> as what else it can be read, by the encoding.
_FLOATING_TYPES = ("float", "double")
_READABLE_AS: Mapping[RecordEncoding, Mapping[str, tuple[str, ...]]] = {
    "avro": {
        "int": ("long", "timestamp", *_FLOATING_TYPES),
        "long": ("timestamp", *_FLOATING_TYPES),
        "timestamp": ("long", *_FLOATING_TYPES),
        "float": ("double",),
    },
    "json": {
        "int": ("long", "timestamp", *_FLOATING_TYPES),
        "long": _FLOATING_TYPES,
        "timestamp": ("long", *_FLOATING_TYPES),
        "float": ("double",),
        "double": ("float",),
    },
}


@dataclass(frozen=True, slots=True)
class CompatibilityViolation:
    """One field, the rule that a change of it breaks, and how."""

    field: str
    rule: str
    reason: str

    def __str__(self) -> str:
        return f"field '{self.field}' breaks {self.rule}: {self.reason}"


@dataclass(frozen=True, slots=True)
class _CompatibilityCheck:
    """Who reads what, in words, and by which rules."""

    rule: str
    readers: str
    records: str
    encoding: RecordEncoding

    def find_violations(
        self, reader: Sequence[ContractField], writer: Sequence[ContractField]
    ) -> list[CompatibilityViolation]:
        written_fields = {field.name: field for field in writer}
        candidates = [self._check_field(field, written_fields.get(field.name)) for field in reader]
        if self.encoding == "json":
            reader_names = {field.name for field in reader}
            reason = f"{self.readers} do not know it and refuse it, and {self.records} may have it"
            candidates += [
                CompatibilityViolation(field.name, self.rule, reason)
                for field in writer
                if field.name not in reader_names
            ]
        return [violation for violation in candidates if violation is not None]

    def _check_field(
        self, field: ContractField, written_field: ContractField | None
    ) -> CompatibilityViolation | None:
        if field.required and (written_field is None or not written_field.required):
            lacking = "do not have it" if written_field is None else "may leave it out"
            return CompatibilityViolation(
                field.name, self.rule, f"{self.readers} must have it, and {self.records} {lacking}"
            )
        if written_field is None or can_read(
            parse_type(field.type), parse_type(written_field.type), self.encoding
        ):
            return None
        return CompatibilityViolation(
            field.name,
            self.rule,
            f"{self.readers} take {field.type}, and {self.records} have {written_field.type}",
        )


def find_violations(
    old: Sequence[ContractField],
    new: Sequence[ContractField],
    rule: CompatibilityMode,
    encoding: RecordEncoding = "avro",
) -> tuple[CompatibilityViolation, ...]:
    """Return what a change from the old fields to the new ones breaks; nothing means that it is compatible."""
    collected: list[CompatibilityViolation] = []
    if rule in ("backward", "full"):
        backward = _CompatibilityCheck(
            "backward compatibility", "readers of the new contract", "records already written", encoding
        )
        collected += backward.find_violations(new, old)
    if rule in ("forward", "full"):
        forward = _CompatibilityCheck(
            "forward compatibility", "readers of the old contract", "new records", encoding
        )
        collected += forward.find_violations(old, new)
    return tuple(collected)


def can_read(reader: FieldType, writer: FieldType, encoding: RecordEncoding) -> bool:
    """Say whether every value of the writer's type can be read as the reader's."""
    if reader.item_type is not None and writer.item_type is not None:
        return can_read(reader.item_type, writer.item_type, encoding)
    if reader.item_type is not None or writer.item_type is not None:
        return False
    return reader.name == writer.name or reader.name in _READABLE_AS[encoding].get(writer.name, ())
