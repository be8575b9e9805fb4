"""The policy of order windows by number of records."""

from dataclasses import dataclass

from penstock.engine.columnar import Rows
from penstock.engine.definition.argument_checks import require_positive
from penstock.engine.definition.keyword import keyword
from penstock.engine.state.header_columns import Int64Array
from penstock.engine.windows.element_sequence import ElementSequence
from penstock.engine.windows.order_policy import ClosePolicy, EvictionPolicy, TriggerPolicy


@dataclass(frozen=True)
class CountPolicy(ClosePolicy, EvictionPolicy, TriggerPolicy):
    """A number of records: the window closes at its n-th record, keeps the last n, or emits after every n."""

    n: int

    def __post_init__(self) -> None:
        require_positive(self.n, "window.count", "records")

    @property
    def max_records(self) -> int:
        """A window closes at its n-th record."""
        return self.n

    def describe_close(self) -> str:
        """Describe when a window closes."""
        return f"after every {self.n} records"

    def describe_eviction(self) -> str:
        """Describe which records remain."""
        return f"the last {self.n} records"

    def describe_trigger(self) -> str:
        """Describe when the content is emitted."""
        return f"after every {self.n} records"

    def number_windows(
        self, sequence: ElementSequence, key_headers: Rows, clock: int
    ) -> tuple[Int64Array, Int64Array]:
        """Divide the running number of records by n."""
        record_sums = sequence.running_sums(sequence.rows["records"])
        return (record_sums - 1) // self.n, sequence.last_of_key(record_sums) // self.n

    def evict_before(self, sequence: ElementSequence, oldest: int, position: int) -> int:
        """Keep n records, the new one included."""
        return max(oldest, position - self.n + 1)

    def fires_after(self, waiting_count: int) -> bool:
        """Return whether n records wait."""
        return waiting_count >= self.n


@keyword("records")
def records(n: int) -> CountPolicy:
    """A policy of order windows by the number of records.

    Args:
        n: the number.

    Example:
        window(tumbling(records(100)))
    """
    return CountPolicy(n)
