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

from penstock.ingestion.contracts.contract import Contract, ContractField, TopicLayout
from penstock.ingestion.contracts.yaml_files import read_yaml
from penstock.ingestion.durations import parse_duration_ms
from penstock.ingestion.errors import ContractError, ContractNotFoundError, DocumentError

CATALOG_FOLDER = Path(__file__).parent.parent / "catalog"
_OPTIONAL_TEXT = str | None
_SCALAR_KEYS = {
    "topic": str,
    "doc": str,
    "key": _OPTIONAL_TEXT,
    "event_time": _OPTIONAL_TEXT,
    "id": _OPTIONAL_TEXT,
    "encoding": str,
}
_SCALAR_KEYS |= {"compatibility": str, "max_bytes": int, "owner": _OPTIONAL_TEXT}
_CONTRACT_KEYS = {**_SCALAR_KEYS, "bound": str, "fields": list, "layout": dict, "environments": dict}
_LAYOUT_KEYS = {"partitions": int, "replicas": int, "retention": str, "compacted": bool, "settings": dict}
_FIELD_KEYS = {"name": str, "type": str, "doc": str, "required": bool, "personal": bool}
_REQUIRED_FIELD_KEYS = {"name", "type", "doc"}
_TYPE_NAMES = {
    str: "text",
    _OPTIONAL_TEXT: "text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
}


@dataclass(frozen=True)
class LoadedCatalog:
    """What the files of a catalog say: the contracts that can be used, and of each other topic why it cannot."""

    contracts: tuple[Contract, ...]
    errors_by_topic: Mapping[str, ContractError]


@cache
def load_contract(name: str, catalog: Path = CATALOG_FOLDER) -> Contract:
    """Return the contract of a topic."""
    path = catalog / f"{name}.yaml"
    if not path.is_file():
        available = ", ".join(list_contract_names(catalog)) or "nothing"
        raise ContractNotFoundError(
            f"there is no contract '{name}' in {catalog}, which holds {available}; add {name}.yaml there"
        )
    return read_contract(path)


def list_contract_names(catalog: Path = CATALOG_FOLDER) -> tuple[str, ...]:
    """Return the names of all contracts, sorted."""
    return tuple(sorted(path.stem for path in catalog.glob("*.yaml")))


def load_contracts(catalog: Path = CATALOG_FOLDER) -> tuple[Contract, ...]:
    """Return every contract of the catalog, sorted by topic."""
    return tuple(load_contract(name, catalog) for name in list_contract_names(catalog))


def load_catalog(catalog: Path = CATALOG_FOLDER) -> LoadedCatalog:
    """Return the same, where a file that cannot be used is the trouble of its own topic only."""
    valid_contracts, errors_by_topic = [], {}
    for name in list_contract_names(catalog):
        try:
            valid_contracts.append(load_contract(name, catalog))
        except ContractError as error:
            errors_by_topic[name] = error
    return LoadedCatalog(tuple(valid_contracts), errors_by_topic)


def read_contract(path: Path) -> Contract:
    """Read one contract from its file; the file is named after the topic."""
    try:
        contract = parse_contract(read_yaml(path))
    except (DocumentError, ContractError) as error:
        raise ContractError(f"{path}: {error}") from error
    if contract.topic != path.stem:
        raise ContractError(f"{path} declares topic '{contract.topic}'; name the file {contract.topic}.yaml")
    return contract


def parse_contract(document: object) -> Contract:
    """Make a contract from what its YAML says."""
    values = _require_mapping(document, "the contract", _CONTRACT_KEYS)
    if "topic" not in values or not values.get("fields"):
        raise ContractError("a contract needs at least 'topic' and 'fields'")
    scalars = {name: value for name, value in values.items() if name in _SCALAR_KEYS}
    layout = _parse_layout(values.get("layout", {}), TopicLayout())
    environments = _require_mapping(values.get("environments", {}), "environments", None)
    return Contract(
        **{"doc": "", **scalars},
        fields=tuple(_parse_field(item) for item in values["fields"]),
        max_out_of_orderness_ms=parse_duration_ms(str(values.get("bound", "10 seconds"))),
        layout=layout,
        environments=tuple((name, _parse_layout(item, layout)) for name, item in environments.items()),
    )


def _parse_field(node: object) -> ContractField:
    values = _require_mapping(node, "a field", _FIELD_KEYS)
    if missing := sorted(_REQUIRED_FIELD_KEYS - values.keys()):
        raise ContractError(f"field {values.get('name', values)!r} has no {missing[0]}: write one")
    return ContractField(**values)


def _parse_layout(node: object, base: TopicLayout) -> TopicLayout:
    values = _require_mapping(node, "a layout", _LAYOUT_KEYS)
    retention = values.get("retention")
    settings = dict(base.settings) | {key: str(value) for key, value in values.get("settings", {}).items()}
    return TopicLayout(
        partitions=values.get("partitions", base.partitions),
        replicas=values.get("replicas", base.replicas),
        retention_ms=base.retention_ms if retention is None else _parse_retention_ms(str(retention)),
        compacted=values.get("compacted", base.compacted),
        settings=tuple(sorted(settings.items())),
    )


def _parse_retention_ms(text: str) -> int:
    return -1 if text == "forever" else parse_duration_ms(text)


def _require_mapping(
    value: object, subject: str, allowed_keys: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ContractError(f"{subject} must be a mapping, not {type(value).__name__}: {value!r:.80}")
    if allowed_keys is not None:
        _check_keys(value, subject, allowed_keys)
    return value


def _check_keys(values: Mapping[str, Any], subject: str, allowed_keys: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name not in allowed_keys:
            raise ContractError(
                f"{subject} says '{name}', which is not known; known are {', '.join(sorted(allowed_keys))}"
            )
        if not isinstance(value, allowed_keys[name]):
            expected = _TYPE_NAMES.get(allowed_keys[name], "a mapping")
            raise ContractError(f"{subject} says {name}: {value!r:.80}, which is not {expected}")
