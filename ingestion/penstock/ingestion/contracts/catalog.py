"""The catalog: one YAML file per topic.

```yaml
topic: sensors
doc: Readings of devices.
key: device
event_time: at
id: id
max_out_of_orderness: 10 seconds
max_future_skew: 10 minutes
owner: team:sensors
fields:
  - {name: device, type: string, doc: The measuring device.}
  - {name: user, type: string, personal: true, doc: The person who took the reading.}
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

from penstock.core.display_path import display_path
from penstock.core.duration import parse_duration_ms
from penstock.core.errors import DurationError
from penstock.core.names import explain_unknown_name, suggest_name
from penstock.ingestion.contracts.contract import Contract, ContractField, TopicLayout
from penstock.ingestion.contracts.future_skew import parse_future_skew
from penstock.ingestion.contracts.type_keys import TYPE_KEYS, compose_type
from penstock.ingestion.contracts.yaml_files import read_yaml
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
_SCALAR_KEYS |= {"compatibility": str, "max_bytes": int, "owner": _OPTIONAL_TEXT, "unknown_fields": str}
_CONTRACT_KEYS = {
    **_SCALAR_KEYS,
    "max_out_of_orderness": str,
    "max_future_skew": _OPTIONAL_TEXT,
    "fields": list,
    "layout": dict,
    "environments": dict,
}
_LAYOUT_KEYS = {"partitions": int, "replicas": int, "retention": str, "compacted": bool, "settings": dict}
_FIELD_KEYS = {"name": str, "type": str, "doc": str, "required": bool, "personal": bool, **TYPE_KEYS}
_REQUIRED_FIELD_KEYS = {"name", "type", "doc"}
_TYPE_NAMES = {
    str: "text",
    _OPTIONAL_TEXT: "text",
    int: "an integer",
    bool: "true or false",
    list: "a list",
}


@dataclass(frozen=True)
class LoadedCatalog:
    """The contracts of a catalog that are valid, and the error of each topic whose contract is not."""

    contracts: tuple[Contract, ...]
    errors_by_topic: Mapping[str, ContractError]


@cache
def load_contract(name: str, catalog: Path = CATALOG_FOLDER) -> Contract:
    """Return the contract of a topic; raise ContractNotFoundError if the catalog has none."""
    path = catalog / f"{name}.yaml"
    if not path.is_file():
        unknown_text = explain_unknown_name("contract", name, list_contract_names(catalog))
        end = "" if unknown_text.endswith("?") else "."
        raise ContractNotFoundError(f"{unknown_text}{end} To declare the topic, add {display_path(path)}")
    return read_contract(path)


def list_contract_names(catalog: Path = CATALOG_FOLDER) -> tuple[str, ...]:
    """Return the names of all contracts, sorted."""
    return tuple(sorted(path.stem for path in catalog.glob("*.yaml")))


def load_contracts(catalog: Path = CATALOG_FOLDER) -> tuple[Contract, ...]:
    """Return every contract of the catalog, sorted by topic."""
    return tuple(load_contract(name, catalog) for name in list_contract_names(catalog))


def load_catalog(catalog: Path = CATALOG_FOLDER) -> LoadedCatalog:
    """Return every contract; an invalid file affects only its own topic."""
    valid_contracts, errors_by_topic = [], {}
    for name in list_contract_names(catalog):
        try:
            valid_contracts.append(load_contract(name, catalog))
        except ContractError as error:
            errors_by_topic[name] = error
    return LoadedCatalog(tuple(valid_contracts), errors_by_topic)


def read_contract(path: Path) -> Contract:
    """Read one contract from its file, which must be named after the topic."""
    try:
        contract = parse_contract(read_yaml(path))
    except (DocumentError, ContractError) as error:
        raise ContractError(f"{display_path(path)}: {error}") from error
    if contract.topic != path.stem:
        raise ContractError(
            f"{display_path(path)}: declares topic '{contract.topic}'. Rename the file to {contract.topic}.yaml."
        )
    return contract


def parse_contract(document: object) -> Contract:
    """Return the contract that a parsed YAML document declares; raise ContractError if it is invalid."""
    values = _require_mapping(document, "The contract", _CONTRACT_KEYS)
    if "topic" not in values or not values.get("fields"):
        raise ContractError("A contract needs 'topic' and 'fields'. Add what is missing.")
    skew_text = values.get("max_future_skew")
    scalars = {name: value for name, value in values.items() if name in _SCALAR_KEYS}
    layout = _parse_layout(values.get("layout", {}), TopicLayout())
    environments = _require_mapping(values.get("environments", {}), "'environments'", None)
    return Contract(
        **{"doc": "", **scalars},
        fields=tuple(_parse_field(item) for item in values["fields"]),
        max_out_of_orderness_ms=_parse_duration_ms(str(values.get("max_out_of_orderness", "10 seconds"))),
        max_future_skew=None if skew_text is None else parse_future_skew(skew_text),
        layout=layout,
        environments=tuple((name, _parse_layout(item, layout)) for name, item in environments.items()),
    )


def _parse_field(node: object) -> ContractField:
    values = _require_mapping(node, "A field", _FIELD_KEYS)
    if missing := sorted(_REQUIRED_FIELD_KEYS - values.keys()):
        raise ContractError(f"Field {values.get('name', values)!r} has no '{missing[0]}'. Add it.")
    members = tuple(_parse_field(item) for item in values.get("fields", ()))
    kept = {name: value for name, value in values.items() if name not in TYPE_KEYS}
    # Lineage and erasure know top-level fields: a struct with a personal member is personal.
    personal = values.get("personal", False) or any(member.personal for member in members)
    return ContractField(
        **{**kept, "type": compose_type(values, members), "personal": personal, "members": members}
    )


def _parse_layout(node: object, base: TopicLayout) -> TopicLayout:
    values = _require_mapping(node, "A layout", _LAYOUT_KEYS)
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
    return -1 if text == "forever" else _parse_duration_ms(text)


def _parse_duration_ms(text: str) -> int:
    try:
        return parse_duration_ms(text)
    except DurationError as error:
        raise ContractError(str(error)) from None


def _require_mapping(
    value: object, subject: str, allowed_keys: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ContractError(f"{subject} must be a mapping, but is {type(value).__name__}: {value!r:.80}")
    if allowed_keys is not None:
        _check_keys(value, subject, allowed_keys)
    return value


def _check_keys(values: Mapping[str, Any], subject: str, allowed_keys: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name not in allowed_keys:
            raise ContractError(
                f"{subject} has an unknown key '{name}'.{suggest_name(str(name), allowed_keys)} "
                f"Keys: {', '.join(sorted(allowed_keys))}."
            )
        if not isinstance(value, allowed_keys[name]):
            expected = _TYPE_NAMES.get(allowed_keys[name], "a mapping")
            raise ContractError(f"{subject} has {name}: {value!r:.80}, which must be {expected}")
