"""The base of order windows, which cut or evict the records of a key in their order, by policies."""

from abc import abstractmethod
from typing import ClassVar

from penstock.engine.columnar import Rows
from penstock.engine.definition.predicates import Predicate
from penstock.engine.state.header_columns import BoolArray, Int64Array
from penstock.engine.windows.element_sequence import ElementSequence, WindowSlices
from penstock.engine.windows.order_policy import OrderPolicy
from penstock.engine.windows.window import StateRetention, Window

POLICY_HINT = "Give records(5), delta('speed', 3), elapsed('1 minute')"

COUNTER_NOTE = "the window counter of each key is kept until the stream is dropped"
"""A key that returns continues its window numbers, however long it was silent."""

DELTA_BASE_COLUMN = "base_value"
"""The state column with the value at the last firing of a trigger policy that compares with it."""


class OrderWindow(Window):
    """Windows over the records of a key in order. Each emits one pane, and no record is late.

    The windows of a key are numbered from 0. The start and end of a window are the minimum and the maximum event
    time (plus one) of its records.
    """

    is_record_ordered: ClassVar[bool] = True

    pane_relation: ClassVar[str] = "Each window has one pane; it is never corrected."

    stores_single_records: ClassVar[bool]
    """Whether each record of a window is stored for itself; otherwise an open window is stored as one element."""

    @property
    @abstractmethod
    def policies(self) -> tuple[OrderPolicy, ...]:
        """The policies of the window."""

    @abstractmethod
    def slice_windows(self, sequence: ElementSequence, key_headers: Rows, clock: int) -> WindowSlices:
        """Return the windows that a batch emits, and which elements stay in the state."""

    @abstractmethod
    def next_due_clock(self, key_headers: Rows, has_buffered: BoolArray) -> Int64Array:
        """Return the clock at which each key emits a window without a new record."""

    @abstractmethod
    def describe_state(self, lateness: int) -> StateRetention:
        """Describe the stored records of a key."""

    def describe_timing(self, lateness: int) -> tuple[str, ...]:
        """Describe that the policy decides."""
        return ("Each window emits one pane, when its policy fires; no record is late.",)

    @property
    def base_field(self) -> str | None:
        """The field whose value at the last firing is stored in DELTA_BASE_COLUMN, if any."""
        return None

    @property
    def is_event_time_bound(self) -> bool:
        """Windows end with their records, whatever the watermark is."""
        return False

    @property
    def numeric_fields(self) -> tuple[str, ...]:
        """The fields that policies compare."""
        fields = (policy.compared_field for policy in self.policies)
        return tuple(dict.fromkeys(field for field in fields if field is not None))

    @property
    def field_location(self) -> str:
        """The location of the policy that compares a field."""
        return next((policy.location for policy in self.policies if policy.compared_field), "window")

    @property
    def record_condition(self) -> Predicate | None:
        """The condition of the first policy that has one."""
        return next((policy.condition for policy in self.policies if policy.condition), None)

    @property
    def condition_location(self) -> str:
        """The location of the policy with the condition."""
        return next((policy.location for policy in self.policies if policy.condition), "window")

    @property
    def is_batch_dependent(self) -> bool:
        """Whether a policy uses the batch clock."""
        return any(policy.uses_clock for policy in self.policies)
