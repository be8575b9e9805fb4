"""Tumbling order windows: where to cut. The open window of a key is stored as one element."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.core.duration import is_duration
from penstock.engine.columnar import Rows
from penstock.engine.definition.argument_checks import require_type
from penstock.engine.definition.keyword import keyword
from penstock.engine.errors import DefinitionError
from penstock.engine.state.header_columns import BoolArray, Int64Array
from penstock.engine.windows.element_sequence import ElementSequence, WindowSlices
from penstock.engine.windows.order_policy import ClosePolicy
from penstock.engine.windows.order_window import COUNTER_NOTE, POLICY_HINT, OrderWindow
from penstock.engine.windows.window import StateRetention


@dataclass(frozen=True)
class Tumbling(OrderWindow):
    """An order window: a policy cuts the records of a key, in order, into windows. Each record is in one window."""

    stores_single_records: ClassVar[bool] = False
    shows_all_keys: ClassVar[bool] = True

    close: ClosePolicy

    def __post_init__(self) -> None:
        if isinstance(self.close, str) and is_duration(self.close):
            fix = (
                f"Write fixed({self.close!r}) for windows of event time, or tumbling(elapsed({self.close!r}))"
            )
            raise DefinitionError("window.tumbling", f"{self.close!r} is a duration, not a policy", fix)
        fix = f"{POLICY_HINT} or punctuation(\"kind = 'end'\")"
        require_type(self.close, ClosePolicy, "window.tumbling", fix)

    def describe(self) -> str:
        """Describe when a window closes."""
        return f"tumbling windows over a key's records in order, closed {self.close.describe_close()}"

    @property
    def policies(self) -> tuple[ClosePolicy]:
        """The policy that closes windows."""
        return (self.close,)

    def describe_state(self, lateness: int) -> StateRetention:
        """Describe the open window."""
        limit = "" if self.close.max_records is None else f", at most {self.close.max_records} of them"
        return StateRetention(
            "open windows",
            f"per key, the records of the open window{limit}, and a window counter",
            f"the window closes; {COUNTER_NOTE}",
        )

    def slice_windows(self, sequence: ElementSequence, key_headers: Rows, clock: int) -> WindowSlices:
        """Cut a sequence into closed windows, and keep the open rest."""
        window_number, closed_counts = self.close.number_windows(sequence, key_headers, clock)
        is_closed = window_number < closed_counts[sequence.key_of_element]
        is_first = np.ones(len(window_number), bool)
        is_first[1:] = (sequence.key_of_element[1:] != sequence.key_of_element[:-1]) | (
            window_number[1:] != window_number[:-1]
        )
        edges = np.append(np.flatnonzero(is_first), len(window_number))
        is_closed_window = is_closed[edges[:-1]]
        buffered_from = sequence.first_of_key + np.bincount(
            sequence.key_of_element[is_closed], minlength=sequence.key_count
        )
        # An open window that already existed keeps its start; any other open window starts in this batch.
        had_no_window = sequence.first_incoming == sequence.first_of_key
        key_headers["since_clock"][(buffered_from > sequence.first_of_key) | had_no_window] = clock
        return WindowSlices(
            edges[:-1][is_closed_window],
            edges[1:][is_closed_window],
            sequence.key_of_element[edges[:-1][is_closed_window]],
            buffered_from,
            key_headers,
        )

    def next_due_clock(self, key_headers: Rows, has_buffered: BoolArray) -> Int64Array:
        """Return the clock at which the open window of each key closes."""
        return self.close.next_close_clock(key_headers, has_buffered)


@keyword("tumbling")
def tumbling(by: ClosePolicy) -> Tumbling:
    """Cut the records of a key, in their order, into windows. For windows of event time, use `fixed`.

    Args:
        by: the policy that closes a window: `records`, `delta`, `elapsed` or `punctuation`.

    Example:
        key("device").window(tumbling(records(100)))

    Not promised: the same windows if the order of the records in their topic changes.
    """
    return Tumbling(by)
