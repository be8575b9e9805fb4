"""The errors of ingestion, in one tree.

IngestionError
├── DocumentError            a YAML file cannot be read
├── ContractError            a contract in the catalog is invalid
│   ├── ContractNotFoundError
│   └── IncompatibleChangeError
├── InvalidRecordError       a record breaks its contract (it goes to the dead-letter topic)
├── IgnoredRecordError       a valid record that its contract does not read, such as the event of a deleted row
├── RegistryError            a schema registry refused a request, or cannot be reached
├── TopicAdminError          the topics of the cluster cannot be read or changed
├── PartitionerError         a partitioner cannot be used
├── LedgerError              a delivery ledger cannot be read, written or continued
├── DeliveryError            the producer stopped; it carries the acknowledged sequence
├── ConsumerGroupError       a consumer group cannot consume, or its offsets cannot be read or committed
│   └── TopicNotFoundError       the broker has no such topic
└── SourceError              a source cannot be read, or cannot resume at a position
    ├── SourceOptionsError   a source does not exist, or its options are wrong
    └── UserSourceError      a source from outside of Penstock raised an error
"""

from penstock.core.errors import PenstockError


class IngestionError(PenstockError):
    """Base of all errors of ingestion. The message says what failed, for which value, where, and how to fix it."""


class DocumentError(IngestionError):
    """A file is missing, unreadable or not valid YAML. `line` is where, if that is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class ContractError(IngestionError):
    """A contract is invalid."""

    exit_code = 2


class ContractNotFoundError(ContractError):
    """The catalog has no contract with this name."""


class IncompatibleChangeError(ContractError):
    """A changed contract breaks readers or writers that its compatibility rule protects."""


class InvalidRecordError(IngestionError):
    """A record breaks its contract. `reason` is the code to count by, `detail` says where."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason} ({detail})" if detail else reason)
        self.reason = reason
        self.detail = detail


class IgnoredRecordError(IngestionError):
    """A valid record that its contract does not read; streams count it as filtered."""


class RegistryError(IngestionError):
    """A schema registry refused a request or cannot be reached."""


class TopicAdminError(IngestionError):
    """The topics of the cluster cannot be read, or changed as declared."""


class PartitionerError(IngestionError):
    """A partitioner does not exist, failed, or returned something other than a number."""


class LedgerError(IngestionError):
    """A delivery ledger cannot be read, written or continued."""


class DeliveryError(IngestionError):
    """The producer stopped. Every sequence below `acknowledged_until` is acknowledged and in the ledger."""

    def __init__(self, message: str, acknowledged_until: int) -> None:
        super().__init__(message)
        self.acknowledged_until = acknowledged_until


class TopicReadError(IngestionError):
    """The records of a topic cannot be read."""


class ConsumerGroupError(IngestionError):
    """A consumer group cannot consume, or its offsets cannot be read or committed."""


class TopicNotFoundError(ConsumerGroupError):
    """The broker has no topic of this name."""

    exit_code = 2


class SourceError(IngestionError):
    """A source cannot be read, or cannot resume at a position."""


class SourceOptionsError(SourceError):
    """A source does not exist, an option does not apply to it, or a required option is missing."""

    exit_code = 2


class UserSourceError(SourceError):
    """A source from outside of Penstock raised an error. `where` has its file, line and text."""

    def __init__(self, source: str, where: str, progress: str = "") -> None:
        super().__init__(f"source {source} failed: {where}{progress}")
        self.source = source
        self.where = where

    def with_progress(self, progress: str) -> "UserSourceError":
        """Return the error with what became of the records that were read before."""
        return UserSourceError(self.source, self.where, f". {progress}")
