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
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from penstock.ingestion.contracts.model import Contract, Field, TopicLayout
from penstock.ingestion.durations import milliseconds
from penstock.ingestion.errors import ContractError, ContractNotFoundError

CATALOG = Path(__file__).parent.parent / "catalog"
_PLAIN = {"topic", "doc", "key", "event_time", "id", "encoding", "compatibility", "max_bytes", "owner"}
_KNOWN = _PLAIN | {"bound", "fields", "layout", "environments"}
_LAYOUT = {"partitions", "replicas", "retention", "compacted", "settings"}
_FIELD = {"name", "type", "doc", "required", "personal"}


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


def read_contract(path: Path) -> Contract:
    """Read one contract from its file; the file is named after the topic."""
    try:
        contract = contract_from(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError, ContractError) as error:
        raise ContractError(f"{path}: {error}") from error
    if contract.topic != path.stem:
        raise ContractError(f"{path} declares topic '{contract.topic}'; name the file {contract.topic}.yaml")
    return contract


def contract_from(declared: object) -> Contract:
    """Make a contract from what its YAML says."""
    values = _mapping(declared, "the contract", _KNOWN)
    if "topic" not in values or not values.get("fields"):
        raise ContractError("a contract needs at least 'topic' and 'fields'")
    plain = {name: values[name] for name in _PLAIN & values.keys()}
    layout = _layout(values.get("layout", {}), TopicLayout())
    environments = _mapping(values.get("environments", {}), "environments", None)
    return Contract(
        **{"doc": "", **plain},
        fields=tuple(Field(**_mapping(item, "a field", _FIELD)) for item in values["fields"]),
        bound_ms=milliseconds(str(values.get("bound", "10 seconds"))),
        layout=layout,
        environments=tuple((name, _layout(item, layout)) for name, item in environments.items()),
    )


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


def _mapping(value: object, what: str, known: set[str] | None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ContractError(f"{what} must be a mapping, not {type(value).__name__}: {value!r:.80}")
    unknown = sorted(set(value) - known) if known is not None else []
    if unknown:
        names = ", ".join(sorted(known or ()))
        raise ContractError(f"{what} says '{unknown[0]}', which is not known; known are {names}")
    return value
