"""The catalog: one YAML file per topic.

```yaml
topic: sensors
doc: What the records are.
key: device
event_time: at
id: id
bound: 10 seconds
owner: team:sensors
fields:
  - {name: device, type: string, doc: Which device measured.}
  - {name: user, type: string, personal: true, doc: Who read it off.}
  - {name: humidity, type: double, required: false, doc: Percent; some devices have no such sensor.}
layout: {partitions: 3, retention: 7 days}
environments:
  production: {partitions: 12, replicas: 3}
```
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from penstock.ingestion.contracts.documents import document_in
from penstock.ingestion.contracts.model import Contract, Field, TopicLayout
from penstock.ingestion.durations import milliseconds
from penstock.ingestion.errors import ContractError, ContractNotFoundError, DocumentError

CATALOG = Path(__file__).parent.parent / "catalog"
_MAYBE = str | None
_PLAIN = {"topic": str, "doc": str, "key": _MAYBE, "event_time": _MAYBE, "id": _MAYBE, "encoding": str}
_PLAIN |= {"compatibility": str, "max_bytes": int, "owner": _MAYBE}
_KNOWN = {**_PLAIN, "bound": str, "fields": list, "layout": dict, "environments": dict}
_LAYOUT = {"partitions": int, "replicas": int, "retention": str, "compacted": bool, "settings": dict}
_FIELD = {"name": str, "type": str, "doc": str, "required": bool, "personal": bool}
_NEEDED = {"name", "type", "doc"}
_WORDS = {str: "text", _MAYBE: "text", int: "a whole number", bool: "true or false", list: "a list"}


@dataclass(frozen=True)
class Declared:
    """What the files of a catalog say: the contracts that can be used, and of each other topic why it cannot."""

    sound: tuple[Contract, ...]
    broken: Mapping[str, ContractError]


@cache
def load_contract(name: str, catalog: Path = CATALOG) -> Contract:
    """Return the contract of a topic."""
    path = catalog / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(contract_names(catalog)) or "nothing"
        raise ContractNotFoundError(
            f"there is no contract '{name}' in {catalog}, which holds {known}; add {name}.yaml there"
        )
    return read_contract(path)


def contract_names(catalog: Path = CATALOG) -> tuple[str, ...]:
    """Return the names of all contracts, sorted."""
    return tuple(sorted(path.stem for path in catalog.glob("*.yaml")))


def contracts(catalog: Path = CATALOG) -> tuple[Contract, ...]:
    """Return every contract of the catalog, sorted by topic."""
    return tuple(load_contract(name, catalog) for name in contract_names(catalog))


def declared(catalog: Path = CATALOG) -> Declared:
    """Return the same, where a file that cannot be used is the trouble of its own topic only."""
    sound, broken = [], {}
    for name in contract_names(catalog):
        try:
            sound.append(load_contract(name, catalog))
        except ContractError as problem:
            broken[name] = problem
    return Declared(tuple(sound), broken)


def read_contract(path: Path) -> Contract:
    """Read one contract from its file; the file is named after the topic."""
    try:
        contract = contract_from(document_in(path))
    except (DocumentError, ContractError) as error:
        raise ContractError(f"{path}: {error}") from error
    if contract.topic != path.stem:
        raise ContractError(f"{path} declares topic '{contract.topic}'; name the file {contract.topic}.yaml")
    return contract


def contract_from(declared: object) -> Contract:
    """Make a contract from what its YAML says."""
    values = _mapping(declared, "the contract", _KNOWN)
    if "topic" not in values or not values.get("fields"):
        raise ContractError("a contract needs at least 'topic' and 'fields'")
    plain = {name: value for name, value in values.items() if name in _PLAIN}
    layout = _layout(values.get("layout", {}), TopicLayout())
    environments = _mapping(values.get("environments", {}), "environments", None)
    return Contract(
        **{"doc": "", **plain},
        fields=tuple(_field(item) for item in values["fields"]),
        bound_ms=milliseconds(str(values.get("bound", "10 seconds"))),
        layout=layout,
        environments=tuple((name, _layout(item, layout)) for name, item in environments.items()),
    )


def _field(declared: object) -> Field:
    values = _mapping(declared, "a field", _FIELD)
    if missing := sorted(_NEEDED - values.keys()):
        raise ContractError(f"field {values.get('name', values)!r} has no {missing[0]}: write one")
    return Field(**values)


def _layout(declared: object, base: TopicLayout) -> TopicLayout:
    values = _mapping(declared, "a layout", _LAYOUT)
    retention = values.get("retention")
    settings = dict(base.settings) | {key: str(value) for key, value in values.get("settings", {}).items()}
    return TopicLayout(
        partitions=values.get("partitions", base.partitions),
        replicas=values.get("replicas", base.replicas),
        retention_ms=base.retention_ms if retention is None else _retention(str(retention)),
        compacted=values.get("compacted", base.compacted),
        settings=tuple(sorted(settings.items())),
    )


def _retention(text: str) -> int:
    return -1 if text == "forever" else milliseconds(text)


def _mapping(value: object, what: str, known: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ContractError(f"{what} must be a mapping, not {type(value).__name__}: {value!r:.80}")
    if known is not None:
        _check(value, what, known)
    return value


def _check(values: Mapping[str, Any], what: str, known: Mapping[str, Any]) -> None:
    for name, said in values.items():
        if name not in known:
            raise ContractError(
                f"{what} says '{name}', which is not known; known are {', '.join(sorted(known))}"
            )
        if not isinstance(said, known[name]):
            kind = _WORDS.get(known[name], "a mapping")
            raise ContractError(f"{what} says {name}: {said!r:.80}, which is not {kind}")
