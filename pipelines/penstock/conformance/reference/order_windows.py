"""Order windows: the records of a key in order, divided by policies. Each window emits one pane."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.predicates import matches_predicate
from penstock.engine.plan.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from penstock.engine.plan.windows import SlidingOrder, Tumbling

WindowContents = list[StageElement]


@dataclass
class TumblingOrderState:
    """The open window of one key."""

    window: Tumbling
    elements: WindowContents = field(default_factory=list)
    opened_at: int = 0

    def on_clock(self, clock: int) -> Iterator[WindowContents]:
        """Close the window by the clock, before the records of the batch."""
        match self.window.close:
            case TimePolicy(elapsed) if self.elements and clock >= self.opened_at + elapsed:
                yield self.close_window()

    def add_element(self, element: StageElement, clock: int) -> Iterator[WindowContents]:
        """Add a record; yield the window that closes before or after it."""
        if self.is_delta_exceeded(element):
            yield self.close_window()
        if not self.elements:
            self.opened_at = clock
        self.elements.append(element)
        if self.is_complete(element):
            yield self.close_window()

    def is_delta_exceeded(self, element: StageElement) -> bool:
        """Tell whether a delta policy closes the window before the record."""
        match self.window.close:
            case DeltaPolicy(field=name, by=by):
                first = next(
                    (
                        buffered.fields[name]
                        for buffered in self.elements
                        if buffered.fields.get(name) is not None
                    ),
                    None,
                )
                return has_risen(first, element.fields.get(name), by)
            case _:
                return False

    def is_complete(self, element: StageElement) -> bool:
        """Tell whether the record is the last of the window."""
        match self.window.close:
            case CountPolicy(n):
                return len(self.elements) == n
            case PunctuationPolicy(predicate):
                return matches_predicate(element.fields, predicate)
            case _:
                return False

    def close_window(self) -> WindowContents:
        """Empty the window and return its content."""
        contents, self.elements = self.elements, []
        return contents


@dataclass
class SlidingOrderState:
    """The content of one key, with the arrival time of each record and the time of the first unemitted one."""

    window: SlidingOrder
    timed_elements: list[tuple[StageElement, int]] = field(default_factory=list)
    pending_count: int = 0
    pending_since: int = 0
    delta_base: Any = None

    def on_clock(self, clock: int) -> Iterator[WindowContents]:
        """Evict and emit by the clock, before the records of the batch."""
        match self.window.evict:
            case TimePolicy(elapsed):
                self.timed_elements = [
                    (element, arrived_at)
                    for element, arrived_at in self.timed_elements
                    if arrived_at + elapsed > clock
                ]
        match self.window.trigger:
            case TimePolicy(elapsed) if self.pending_count and clock >= self.pending_since + elapsed:
                yield from self.emit_contents()

    def add_element(self, element: StageElement, clock: int) -> Iterator[WindowContents]:
        """Add a record; yield the content that is emitted before or after it."""
        match self.window.trigger:
            case DeltaPolicy(field=name, by=by):
                if has_risen(self.delta_base, element.fields.get(name), by):
                    yield from self.emit_contents()
                    self.delta_base = element.fields[name]
                elif self.delta_base is None:
                    self.delta_base = element.fields.get(name)
        self.evict_before(element)
        self.timed_elements.append((element, clock))
        self.pending_since = clock if self.pending_count == 0 else self.pending_since
        self.pending_count += 1
        match self.window.trigger:
            case CountPolicy(n) if self.pending_count >= n:
                yield from self.emit_contents()

    def evict_before(self, incoming: StageElement) -> None:
        """Evict records because of an incoming one."""
        match self.window.evict:
            case CountPolicy(n):
                self.timed_elements = self.timed_elements[max(len(self.timed_elements) - n + 1, 0) :]
            case DeltaPolicy(field=name, by=by):
                while self.timed_elements and has_risen(
                    self.timed_elements[0][0].fields.get(name), incoming.fields.get(name), by
                ):
                    self.timed_elements.pop(0)

    def emit_contents(self) -> Iterator[WindowContents]:
        """Emit the content, unless it is empty."""
        self.pending_count = 0
        if self.timed_elements:
            yield [element for element, _ in self.timed_elements]


def has_risen(first: Any, current: Any, delta: float) -> bool:
    """Tell whether a field has risen by more than `delta`; false with a null."""
    return first is not None and current is not None and current - first > delta


def create_order_state(window: Tumbling | SlidingOrder) -> TumblingOrderState | SlidingOrderState:
    """Return the state of a key without records."""
    match window:
        case Tumbling():
            return TumblingOrderState(window)
        case SlidingOrder():
            return SlidingOrderState(window)


def event_time_bounds(contents: Sequence[StageElement]) -> tuple[int, int]:
    """Return the smallest event time, and the largest plus one."""
    times = [element.time for element in contents]
    return min(times), max(times) + 1
