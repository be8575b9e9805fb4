"""Everything that can go wrong in ingestion, in one tree.

IngestionError
├── DocumentError            a file that people write cannot be read
├── ContractError            a declaration in the catalog cannot be used
│   ├── ContractNotFoundError
│   └── IncompatibleChangeError
├── BrokenRecordError        one record breaks its contract (goes to the dead-letter topic)
├── RegistryError            a schema registry refused, or cannot be reached
├── TopicsError              the cluster's topics cannot be made as declared
├── RouteError               what is to decide on partitions cannot be used
├── LedgerError              a delivery ledger cannot be read, written or continued
├── DeliveryError            the producer stopped; carries the sequence it reached
├── GroupError               a consumer group cannot be read, or its offsets not kept
└── SourceError              a source cannot be read from the position asked for
    └── SourceOptionsError   a source was told what it cannot use, or not told what it needs
"""

from penstock.core.errors import PenstockError


class IngestionError(PenstockError):
    """Base of all: its text says what was tried, with which value, where from, and the next step."""


class DocumentError(IngestionError):
    """A file is no YAML, or is not there to be read."""


class ContractError(IngestionError):
    """A contract cannot be used as it is declared."""

    exit_code = 2


class ContractNotFoundError(ContractError):
    """There is no contract of that name in the catalog."""


class IncompatibleChangeError(ContractError):
    """A changed contract breaks a reader or a writer that its compatibility rule protects."""


class InvalidRecordError(IngestionError):
    """A record breaks its contract; `reason` is a word to count by, the text says where."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class RegistryError(IngestionError):
    """A schema registry refused a request or cannot be reached."""


class TopicAdminError(IngestionError):
    """The cluster's topics cannot be read or made as declared."""


class PartitionerError(IngestionError):
    """There is no such route, or it does not give partitions."""


class LedgerError(IngestionError):
    """A delivery ledger cannot be read, written or continued from."""


class DeliveryError(IngestionError):
    """The producer stopped; every sequence below `reached` is acknowledged and in the ledger."""

    def __init__(self, message: str, acknowledged_until: int) -> None:
        super().__init__(message)
        self.acknowledged_until = acknowledged_until


class ConsumerGroupError(IngestionError):
    """A consumer group cannot consume, or its offsets cannot be read or kept."""


class SourceError(IngestionError):
    """A source cannot be read, or cannot continue from the position it was asked to."""


class SourceOptionsError(SourceError):
    """A source was told what it does nothing with, or was not told what it cannot do without."""

    exit_code = 2
