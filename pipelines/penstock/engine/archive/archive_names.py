"""The names of archives: their streams and tables."""

from penstock.engine.errors import DefinitionError
from penstock.ingestion.contracts import CATALOG_FOLDER, list_contract_names, read_contract
from penstock.ingestion.errors import ContractError

_ARCHIVE_PREFIX = "archive-"


def archive_name(topic: str) -> str:
    """Return the name of the stream that archives a topic."""
    return f"{_ARCHIVE_PREFIX}{topic}"


def find_archived_topic(stream: str) -> str | None:
    """Return the topic that a stream archives; None for other streams."""
    topic = stream.removeprefix(_ARCHIVE_PREFIX)
    return topic if topic != stream and topic in list_contract_names() else None


def list_archive_names() -> tuple[str, ...]:
    """Return the archives of all contracts."""
    return tuple(archive_name(topic) for topic in list_contract_names())


def records_path(topic: str) -> str:
    """Return the path of the records table, below the warehouse."""
    return f"raw/{topic}"


def ledger_path(topic: str) -> str:
    """Return the path of the archive's ledger, below the warehouse."""
    return f"ledger/{archive_name(topic)}"


def is_compacted(topic: str) -> bool:
    """Return whether the topic's contract compacts it in any environment.

    Raises DefinitionError if the contract cannot be read.
    """
    try:
        contract = read_contract(CATALOG_FOLDER / f"{topic}.yaml")
    except ContractError as error:
        raise DefinitionError(archive_name(topic), error, "Fix that file") from error
    return any(layout.compacted for layout in (contract.layout, *dict(contract.environments).values()))
