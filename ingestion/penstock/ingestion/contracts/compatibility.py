"""Whether a changed contract still reads what is there, and is still read by who is there.

*Backward*: the new contract reads records of the old one. *Forward*: the old one reads records of the new one.
*Full*: both. The rules are Avro's: a reader fills a missing field only where it may be absent, ignores fields
that it does not know, and reads a narrower number as a wider one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.ingestion.contracts.model import Field
from penstock.ingestion.contracts.types import Compatibility, FieldType, parse_type

_WIDENS: dict[str, tuple[str, ...]] = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One field, the rule that a change of it breaks, and how."""

    field: str
    rule: str
    why: str

    def __str__(self) -> str:
        return f"field '{self.field}' breaks {self.rule}: {self.why}"


def violations(old: Sequence[Field], new: Sequence[Field], rule: Compatibility) -> tuple[Violation, ...]:
    """Return what a change from the old fields to the new ones breaks; nothing means that it is compatible."""
    found: list[Violation] = []
    if rule in ("backward", "full"):
        found += _unreadable(
            new, old, "backward compatibility", "the new contract", "records already written"
        )
    if rule in ("forward", "full"):
        found += _unreadable(old, new, "forward compatibility", "readers of the old contract", "new records")
    return tuple(found)


def _unreadable(
    reader: Sequence[Field], writer: Sequence[Field], rule: str, who: str, what: str
) -> list[Violation]:
    written = {field.name: field for field in writer}
    found = []
    for field in reader:
        other = written.get(field.name)
        if other is None:
            if field.required:
                found.append(Violation(field.name, rule, f"{who} must have it, and {what} do not have it"))
        elif field.required and not other.required:
            found.append(Violation(field.name, rule, f"{who} must have it, and {what} may leave it out"))
        elif not reads(parse_type(field.type), parse_type(other.type)):
            found.append(
                Violation(field.name, rule, f"{who} takes {field.type}, and {what} have {other.type}")
            )
    return found


def reads(reader: FieldType, writer: FieldType) -> bool:
    """Say whether every value of the writer's type can be read as the reader's."""
    if reader.item is not None and writer.item is not None:
        return reads(reader.item, writer.item)
    if reader.item is not None or writer.item is not None:
        return False
    wanted, given = _number(reader.name), _number(writer.name)
    return wanted == given or wanted in _WIDENS.get(given, ())


def _number(name: str) -> str:
    return "long" if name == "timestamp" else name
