"""What archives are called: the stream that keeps one, and its tables."""

from penstock.ingestion.contracts import CATALOG, contract_names, read_contract
from penstock.ingestion.errors import ContractError
from penstock.pipelines.errors import DefinitionError

_PREFIX = "archive-"


def archive_of(topic: str) -> str:
    """Return the name of the stream that keeps a topic's archive."""
    return f"{_PREFIX}{topic}"


def archived_topic(stream: str) -> str | None:
    """Return the topic that a stream archives; None for a stream that is no archive."""
    topic = stream.removeprefix(_PREFIX)
    return topic if topic != stream and topic in contract_names() else None


def archive_names() -> tuple[str, ...]:
    """Return the archives that there can be, one for each contract."""
    return tuple(archive_of(topic) for topic in contract_names())


def records_path(topic: str) -> str:
    """Return where the records are, below the warehouse."""
    return f"raw/{topic}"


def ledger_path(topic: str) -> str:
    """Return where it is told what was taken from which offsets, below the warehouse."""
    return f"ledger/{archive_of(topic)}"


def is_compacted(topic: str) -> bool:
    """Return whether the topic's contract, as it is now, has it compacted, in whatever environment.

    Raises DefinitionError where that cannot be told.
    """
    try:
        contract = read_contract(CATALOG / f"{topic}.yaml")
    except ContractError as problem:
        raise DefinitionError(archive_of(topic), problem, "Mend that file") from problem
    return any(layout.compacted for layout in (contract.layout, *dict(contract.environments).values()))
