"""Records that a batch excludes by their addresses, and inputs that can do without them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from penstock.engine.batch.batch_input import BatchInput
from penstock.engine.batch.intent import OffsetRange

OffsetRanges = tuple[OffsetRange, ...]


@dataclass(frozen=True)
class ExcludedRecord:
    """An excluded record, and why: the message of user code, or the address of its replay.

    The reason of a record that is excluded `as_recorded` is that of its row in the quarantine.
    """

    topic: str
    partition: int
    offset: int
    reason: str
    kind: Literal["user_code_error", "replayed", "as_recorded"] = "user_code_error"

    @property
    def address(self) -> str:
        """Where the record is in its topic."""
        return f"{self.topic}/{self.partition} offset {self.offset}"

    @property
    def quarantine_reason(self) -> str:
        """The reason, as the quarantine table has it."""
        return self.reason if self.kind == "as_recorded" else f"{self.kind}: {self.reason}"


ResentFinder = Callable[[OffsetRanges], Sequence[ExcludedRecord]]
"""Returns which records of some ranges a batch excludes: they were replayed to other addresses, or left out."""


def find_no_resent(_ranges: OffsetRanges) -> Sequence[ExcludedRecord]:
    """Return no record."""
    return ()


@runtime_checkable
class SplittableInput(BatchInput, Protocol):
    """Records that can be processed in parts."""

    def describe_user_error(self, error: BaseException) -> str:
        """Return the message of the user code that raised; empty if the error has another cause."""

    def restrict_to(self, ranges: OffsetRanges) -> "SplittableInput":
        """Return the records of these ranges only."""

    def exclude_records(self, excluded: Sequence[ExcludedRecord]) -> "SplittableInput":
        """Return the same records, with these marked as invalid."""
