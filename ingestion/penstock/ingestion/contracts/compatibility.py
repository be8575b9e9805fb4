"""Compatibility of a changed contract with existing records and existing readers.

*Backward*: the new contract reads records of the old one. *Forward*: the old contract reads records of the new one.
*Full*: both. The rules are those of the readers. The Avro reader fills a missing field only if the field is
optional, ignores unknown fields, and reads a narrower number as a wider one. The JSON reader refuses unknown
fields if its contract says so, and reads a number type if every value of it is in the range of its own type.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.ingestion.contracts.contract import ContractField
from penstock.ingestion.contracts.contract_modes import CompatibilityMode, ValueForm


@dataclass(frozen=True, slots=True)
class CompatibilityViolation:
    """A field, the compatibility rule that its change breaks, and the reason."""

    field: str
    rule: str
    reason: str

    def __str__(self) -> str:
        return f"field '{self.field}' breaks {self.rule}: {self.reason}"


@dataclass(frozen=True, slots=True)
class _CompatibilityCheck:
    """One direction of the check: the names of readers and records for messages, and the form of values."""

    rule: str
    readers: str
    records: str
    value_form: ValueForm
    refuses_unknown: bool

    def find_violations(
        self, reader: Sequence[ContractField], writer: Sequence[ContractField]
    ) -> list[CompatibilityViolation]:
        written_fields = {field.name: field for field in writer}
        candidates = [self._check_field(field, written_fields.get(field.name)) for field in reader]
        if self.refuses_unknown:
            reader_names = {field.name for field in reader}
            reason = f"{self.readers} refuse it as unknown, but {self.records} may have it"
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
            gap = "do not have it" if written_field is None else "may omit it"
            return CompatibilityViolation(
                field.name, self.rule, f"{self.readers} require it, but {self.records} {gap}"
            )
        if written_field is None or field.parsed_type.can_read(written_field.parsed_type, self.value_form):
            return None
        return CompatibilityViolation(
            field.name,
            self.rule,
            f"{self.readers} expect {field.type}, but {self.records} have {written_field.type}",
        )


def find_violations(
    old: Sequence[ContractField],
    new: Sequence[ContractField],
    rule: CompatibilityMode,
    value_form: ValueForm = "avro",
    *,
    old_refuses_unknown: bool = False,
    new_refuses_unknown: bool = False,
) -> tuple[CompatibilityViolation, ...]:
    """Return what a change from the old to the new fields breaks; an empty result means that it is compatible.

    `old_refuses_unknown` and `new_refuses_unknown` say whether readers of that contract refuse unknown fields.
    """
    collected: list[CompatibilityViolation] = []
    if rule in ("backward", "full"):
        backward = _CompatibilityCheck(
            "backward compatibility",
            "readers of the new contract",
            "existing records",
            value_form,
            new_refuses_unknown,
        )
        collected += backward.find_violations(new, old)
    if rule in ("forward", "full"):
        forward = _CompatibilityCheck(
            "forward compatibility",
            "readers of the old contract",
            "new records",
            value_form,
            old_refuses_unknown,
        )
        collected += forward.find_violations(old, new)
    return tuple(collected)
