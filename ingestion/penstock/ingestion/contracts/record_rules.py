"""The rules by which the records of a topic are judged."""

from dataclasses import dataclass

from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.contract_modes import DeletePolicy, EnvelopeFields, UnknownFieldPolicy


@dataclass(frozen=True, slots=True)
class RecordRules:
    """The format and the fields of a record, and what happens to fields that are not among them.

    A contract gives them to producers, and the plan of a stream gives the same ones to the stream. `event_time` is
    required in any case. No reason contains a value of `personal_fields`. `deletes` and `envelope`
    are for events of changed rows.
    """

    fields: tuple[ContractField, ...]
    event_time: str | None = None
    unknown_fields: UnknownFieldPolicy = "ignore"
    personal_fields: frozenset[str] = frozenset()
    encoding: str = "json"
    deletes: DeletePolicy | None = None
    envelope: EnvelopeFields = ()


def to_record_rules(contract: Contract) -> RecordRules:
    """Return the rules of a contract."""
    personal_fields = frozenset(field.name for field in contract.fields if field.personal)
    return RecordRules(
        contract.fields,
        contract.event_time,
        contract.unknown_fields,
        personal_fields,
        contract.encoding,
        contract.deletes,
        contract.envelope,
    )
