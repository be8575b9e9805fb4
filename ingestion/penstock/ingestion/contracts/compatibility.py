"""Whether a changed contract still reads what is there, and is still read by who is there.

*Backward*: the new contract reads records of the old one. *Forward*: the old one reads records of the new one.
*Full*: both. The rules are those of who reads. Avro's reader fills a missing field only where it may be absent,
ignores fields that it does not know, and reads a narrower number as a wider one. The reader of JSON refuses fields
that it does not know, and reads a whole number where every one of its kind lies in the range of the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.ingestion.contracts.model import Field
from penstock.ingestion.contracts.types import Compatibility, Encoding, FieldType, parse_type

# What is written -> as what else it can be read, by the encoding.
_FRACTIONS = ("float", "double")
_WIDENS: Mapping[Encoding, Mapping[str, tuple[str, ...]]] = {
    "avro": {
        "int": ("long", "timestamp", *_FRACTIONS),
        "long": ("timestamp", *_FRACTIONS),
        "timestamp": ("long", *_FRACTIONS),
        "float": ("double",),
    },
    "json": {
        "int": ("long", "timestamp", *_FRACTIONS),
        "long": _FRACTIONS,
        "timestamp": ("long", *_FRACTIONS),
        "float": ("double",),
        "double": ("float",),
    },
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One field, the rule that a change of it breaks, and how."""

    field: str
    rule: str
    why: str

    def __str__(self) -> str:
        return f"field '{self.field}' breaks {self.rule}: {self.why}"


@dataclass(frozen=True, slots=True)
class _Reading:
    """Who reads what, in words, and by which rules."""

    rule: str
    who: str
    what: str
    encoding: Encoding

    def violations(self, reader: Sequence[Field], writer: Sequence[Field]) -> list[Violation]:
        written = {field.name: field for field in writer}
        found = [self._judged(field, written.get(field.name)) for field in reader]
        if self.encoding == "json":
            known = {field.name for field in reader}
            why = f"{self.who} do not know it and refuse it, and {self.what} may have it"
            found += [Violation(field.name, self.rule, why) for field in writer if field.name not in known]
        return [violation for violation in found if violation is not None]

    def _judged(self, field: Field, other: Field | None) -> Violation | None:
        if field.required and (other is None or not other.required):
            lacking = "do not have it" if other is None else "may leave it out"
            return Violation(field.name, self.rule, f"{self.who} must have it, and {self.what} {lacking}")
        if other is None or reads(parse_type(field.type), parse_type(other.type), self.encoding):
            return None
        return Violation(
            field.name, self.rule, f"{self.who} take {field.type}, and {self.what} have {other.type}"
        )


def violations(
    old: Sequence[Field], new: Sequence[Field], rule: Compatibility, encoding: Encoding = "avro"
) -> tuple[Violation, ...]:
    """Return what a change from the old fields to the new ones breaks; nothing means that it is compatible."""
    found: list[Violation] = []
    if rule in ("backward", "full"):
        backward = _Reading(
            "backward compatibility", "readers of the new contract", "records already written", encoding
        )
        found += backward.violations(new, old)
    if rule in ("forward", "full"):
        forward = _Reading("forward compatibility", "readers of the old contract", "new records", encoding)
        found += forward.violations(old, new)
    return tuple(found)


def reads(reader: FieldType, writer: FieldType, encoding: Encoding) -> bool:
    """Say whether every value of the writer's type can be read as the reader's."""
    if reader.item is not None and writer.item is not None:
        return reads(reader.item, writer.item, encoding)
    if reader.item is not None or writer.item is not None:
        return False
    return reader.name == writer.name or reader.name in _WIDENS[encoding].get(writer.name, ())
