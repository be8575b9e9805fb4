"""Order windows: the records of a key in order, divided by policies. Each window emits one pane."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, Protocol

from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.order_policies import (
    TimedElements,
    WindowContents,
    closes_after,
    closes_before,
    evict_before,
    evict_by_clock,
    fires_after,
    fires_before,
    is_clock_due,
)
from penstock.engine.windows.order_window import OrderWindow
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.tumbling import Tumbling


class OrderState(Protocol):
    """The state of one key of an order window."""

    def on_clock(self, clock: int) -> Iterator[WindowContents]:
        """Yield the windows that the clock emits, before the records of the batch."""
        ...

    def add_element(self, element: StageElement, clock: int) -> Iterator[WindowContents]:
        """Add a record; yield the windows that are emitted before or after it."""
        ...


@singledispatch
def create_order_state(window: OrderWindow) -> OrderState:
    """Return the state of a key without records. The module of a kind from elsewhere registers its own."""
    raise TypeError(f"{window} has no reference implementation. Register one with create_order_state")


@dataclass
class TumblingOrderState:
    """The open window of one key."""

    window: Tumbling
    elements: WindowContents = field(default_factory=list)
    opened_at: int = 0

    def on_clock(self, clock: int) -> Iterator[WindowContents]:
        """Close the window by the clock, before the records of the batch."""
        if self.elements and is_clock_due(self.window.close, self.opened_at, clock):
            yield self.close_window()

    def add_element(self, element: StageElement, clock: int) -> Iterator[WindowContents]:
        """Add a record; yield the window that closes before or after it."""
        if closes_before(self.window.close, self.elements, element):
            yield self.close_window()
        if not self.elements:
            self.opened_at = clock
        self.elements.append(element)
        if closes_after(self.window.close, self.elements, element):
            yield self.close_window()

    def close_window(self) -> WindowContents:
        """Empty the window and return its content."""
        contents, self.elements = self.elements, []
        return contents


@dataclass
class SlidingOrderState:
    """The content of one key, with the arrival time of each record and the time of the first unemitted one."""

    window: SlidingOrder
    timed_elements: TimedElements = field(default_factory=list)
    pending_count: int = 0
    pending_since: int = 0
    base: Any = None

    def on_clock(self, clock: int) -> Iterator[WindowContents]:
        """Evict and emit by the clock, before the records of the batch."""
        self.timed_elements = evict_by_clock(self.window.evict, self.timed_elements, clock)
        if self.pending_count and is_clock_due(self.window.trigger, self.pending_since, clock):
            yield from self.emit_contents()

    def add_element(self, element: StageElement, clock: int) -> Iterator[WindowContents]:
        """Add a record; yield the content that is emitted before or after it."""
        is_firing, self.base = fires_before(self.window.trigger, self.base, element)
        if is_firing:
            yield from self.emit_contents()
        self.timed_elements = [
            *evict_before(self.window.evict, self.timed_elements, element),
            (element, clock),
        ]
        self.pending_since = clock if self.pending_count == 0 else self.pending_since
        self.pending_count += 1
        if fires_after(self.window.trigger, self.pending_count):
            yield from self.emit_contents()

    def emit_contents(self) -> Iterator[WindowContents]:
        """Emit the content, unless it is empty."""
        self.pending_count = 0
        if self.timed_elements:
            yield [element for element, _ in self.timed_elements]


@create_order_state.register
def create_tumbling_state(window: Tumbling) -> OrderState:
    """Return a key without an open window."""
    return TumblingOrderState(window)


@create_order_state.register
def create_sliding_state(window: SlidingOrder) -> OrderState:
    """Return a key without content."""
    return SlidingOrderState(window)


def event_time_bounds(contents: Sequence[StageElement]) -> tuple[int, int]:
    """Return the smallest event time, and the largest plus one."""
    times = [element.time for element in contents]
    return min(times), max(times) + 1
