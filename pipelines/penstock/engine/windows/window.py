"""The base of all windows: what the engine, `explain`, the audit and maintenance ask any of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from penstock.engine.definition.predicates import Predicate

DEFAULT_FILE_SPAN_MS = 3_600_000


@dataclass(frozen=True)
class StateRetention:
    """The state that a window keeps: what its items are, what is stored of each, and until when."""

    items: str
    contents: str
    until: str


class Window(ABC):
    """How a stage groups its elements. All times are in milliseconds, and all windows are [start, end)."""

    is_record_ordered: ClassVar[bool] = False
    """Whether the records of a key are processed one by one, without partial aggregation."""

    reuses_upstream_windows: ClassVar[bool] = False
    """Whether elements stay in the windows of the panes that they come from."""

    never_ends: ClassVar[bool] = False
    """Whether windows have no end. Then they emit by their trigger, or when the input ends."""

    shows_all_keys: ClassVar[bool] = False
    """Whether a diagram shows all keys together, because a single key emits too rarely."""

    pane_relation: ClassVar[str | None] = None
    """How the panes of a window relate, in a sentence for `explain`; None where the accumulation mode decides."""

    @abstractmethod
    def describe(self) -> str:
        """Describe the windows in a phrase, as in `fixed windows of 1 minute`."""

    @property
    def uses_processing_time(self) -> bool:
        """Whether the batch clock, not event time, assigns records to windows."""
        return False

    @property
    def is_event_time_bound(self) -> bool:
        """Whether the corrections of a window end in event time."""
        return not self.is_record_ordered and not self.uses_processing_time

    @property
    def merge_gap(self) -> int | None:
        """The gap within which windows of a key merge; None for windows that do not grow or merge."""
        return None

    @property
    def numeric_fields(self) -> tuple[str, ...]:
        """The fields of a record that the window compares as numbers, each once."""
        return ()

    @property
    def field_location(self) -> str:
        """The location of `numeric_fields` in a definition, for errors."""
        return "window"

    @property
    def record_condition(self) -> Predicate | None:
        """The condition that the window evaluates on each record, or on each right record of a join."""
        return None

    @property
    def condition_location(self) -> str:
        """The location of `record_condition` in a definition, for errors."""
        return "window"

    @property
    def clock_boundaries(self) -> tuple[tuple[int, int], ...] | None:
        """The period and origin of each series of batch clocks at which windows start or end.

        Batches between two of them may be replayed as one. None if they are unknown: then a replay runs each batch
        as it was, which is always right.
        """
        return None if self.uses_processing_time else ()

    @property
    def is_batch_dependent(self) -> bool:
        """Whether a replay must run each batch as it was, because results depend on the clock of every batch."""
        return self.clock_boundaries is None

    @property
    def keeps_state(self) -> bool:
        """Whether anything is stored between batches."""
        return True

    @property
    def may_overlap(self) -> bool:
        """Whether an element may lie in several windows of its key, or in none."""
        return False

    @property
    def has_fixed_bounds(self) -> bool:
        """Whether the end of a window follows from its start, so that rows of a closed window never change."""
        return False

    @property
    def max_reach_ms(self) -> int | None:
        """The longest distance from the time of an element to the end of its window; None if it is unknown.

        Without it, the audit does not recompute results of deduplicated records.
        """
        return None

    @property
    def file_span_ms(self) -> int | None:
        """The interval of window starts that a file of latest values covers; None for one file of all windows.

        It should be near the distance between two windows. A wrong value costs time, never results.
        """
        return DEFAULT_FILE_SPAN_MS

    @property
    def drawn_interval(self) -> int:
        """How many windows a diagram advances from one drawn window to the next, so that they do not overlap."""
        return 1

    def is_drawn(self, start: float) -> bool:
        """Return whether a diagram draws the window with this start."""
        return True

    def bounds_sql(self, time_sql: str) -> tuple[str, str]:
        """Return Spark SQL for the start and end of the window of a time.

        Without windows, a record covers its own instant. For windows that overlap, `time_sql` is the start of one
        of them.
        """
        return time_sql, f"({time_sql} + 1)"

    def starts_sql(self, time_sql: str) -> str | None:
        """Return Spark SQL for the array of the starts of all windows of a time, oldest first.

        None for kinds with exactly one window for each time.
        """
        return None

    def describe_timing(self, lateness: int) -> tuple[str, ...] | None:
        """Describe when rows appear and which records are late, in sentences; None where the trigger decides."""
        return None

    def describe_state(self, lateness: int) -> StateRetention | None:
        """Describe the stored state; None for windows whose state is that of their trigger and aggregates."""
        return None
