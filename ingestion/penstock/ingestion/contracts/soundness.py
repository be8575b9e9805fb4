"""Whether a contract can be used: each reason why not is a sentence with the way out."""

import re
from collections.abc import Iterator
from keyword import iskeyword
from typing import TYPE_CHECKING, get_args

from penstock.ingestion.contracts.types import Compatibility, Encoding, parse_type
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.model import Contract, Field, TopicLayout

_OWNER = re.compile(r"team:[\w-]+|[^@\s]+@[^@\s]+")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
# What Avro allows, and what the dead-letter topic's longer name leaves.
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_TOPIC = 249 - len(".dead-letters")
_MOST_BYTES = 32_000_000


def check_contract(contract: "Contract") -> None:
    """Raise ContractError, with the first thing that is wrong."""
    for wrong in _wrong(contract):
        raise ContractError(f"contract {contract.topic} {wrong}")


def _wrong(contract: "Contract") -> Iterator[str]:
    yield from _wrong_name(contract.topic)
    if contract.owner is not None and not _OWNER.fullmatch(contract.owner):
        yield f"has the owner '{contract.owner}': write an address, or team: and a name, as in team:sensors"
    for role, known in (("encoding", get_args(Encoding)), ("compatibility", get_args(Compatibility))):
        if (said := getattr(contract, role)) not in known:
            yield f"has the {role} '{said}'; use one of {', '.join(known)}"
    if not 1 <= contract.max_bytes <= _MOST_BYTES:
        yield f"has max_bytes {contract.max_bytes}; write a number from 1 to {_MOST_BYTES}"
    yield from _wrong_fields(contract.fields)
    yield from _wrong_roles(contract)
    for where, layout in (("layout", contract.layout), *contract.environments):
        yield from (f"has in {where} {wrong}" for wrong in _wrong_layout(layout, contract.key))


def _wrong_name(topic: str) -> Iterator[str]:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        yield "has a name that no topic can have: use letters, digits, dots, dashes and _"
    if len(topic) > _LONGEST_TOPIC:
        yield f"has a name of {len(topic)} letters; the longest that Kafka takes has {_LONGEST_TOPIC}"


def _wrong_fields(fields: "tuple[Field, ...]") -> Iterator[str]:
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        yield f"declares a field twice: {', '.join(sorted(names))}"
    for field in fields:
        if not _FIELD.fullmatch(field.name) or iskeyword(field.name):
            yield (
                f"has a field '{field.name}', which is no name for one: begin with a letter, go on with letters, "
                "digits and _, and take no word of Python's own"
            )
        parse_type(field.type)


def _wrong_roles(contract: "Contract") -> Iterator[str]:
    fields = {field.name: field for field in contract.fields}
    roles = {
        role: name for role in ("key", "event_time", "id") if (name := getattr(contract, role)) is not None
    }
    for role, name in roles.items():
        if name not in fields:
            yield f"names '{name}' as {role}, and has no such field; declare the field"
    if contract.event_time is not None and fields[contract.event_time].type != "timestamp":
        yield f"has the event time '{contract.event_time}', which must be of type timestamp"
    for role, name in roles.items():
        if not fields[name].required:
            yield f"has the optional field '{name}' as {role}: it must be required"
        if fields[name].kind.item is not None:
            yield f"has the array '{name}' as {role}: it must be one value"


def _wrong_layout(layout: "TopicLayout", key: str | None) -> Iterator[str]:
    for name in ("partitions", "replicas"):
        if (said := getattr(layout, name)) < 1:
            yield f"{said} {name}; write 1 or more"
    if layout.retention_ms < -1:
        yield f"a retention of {layout.retention_ms} ms; write a span, such as 7 days, or forever"
    if layout.compacted and key is None:
        yield "compaction, and no key by which records replace each other: name a key, or do not compact"
