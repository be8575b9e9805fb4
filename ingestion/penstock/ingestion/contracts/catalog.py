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

from penstock.core.display_path import display_path
from penstock.core.names import explain_unknown_name
from penstock.ingestion.contracts.contract import Contract
from penstock.ingestion.contracts.contract_parser import parse_contract
from penstock.ingestion.contracts.contract_problems import locate_problems
from penstock.ingestion.contracts.yaml_files import read_yaml
from penstock.ingestion.errors import ContractError, ContractNotFoundError, DocumentError

CATALOG_FOLDER = Path(__file__).parent.parent / "catalog"


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
    """Read one contract from its file, which must be named after the topic.

    Raises ContractError with every problem of the file, each with its line.
    """
    try:
        contract = parse_contract(read_yaml(path))
    except DocumentError as error:
        raise ContractError(f"{display_path(path)}: {error}") from error
    except ContractError as error:
        raise locate_problems(error, path) from error
    if contract.topic != path.stem:
        raise ContractError(
            f"{display_path(path)}: declares topic '{contract.topic}'. Rename the file to {contract.topic}.yaml."
        )
    return contract
