"""What the policies of order windows decide about the elements of a key.

The module of a policy from elsewhere registers the functions for which the policy has a meaning.
"""

from functools import singledispatch
from typing import Any, TypeAlias

from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.predicates import matches_predicate
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.delta_policy import DeltaPolicy
from penstock.engine.windows.order_policy import OrderPolicy
from penstock.engine.windows.punctuation_policy import PunctuationPolicy
from penstock.engine.windows.time_policy import TimePolicy

WindowContents: TypeAlias = list[StageElement]
TimedElements: TypeAlias = list[tuple[StageElement, int]]
"""Elements, each with the clock at which it arrived."""


@singledispatch
def is_clock_due(policy: OrderPolicy, since: int, clock: int) -> bool:
    """Tell whether the clock closes or emits a window, since the clock of its first element."""
    return False


@is_clock_due.register
def has_time_elapsed(policy: TimePolicy, since: int, clock: int) -> bool:
    """Tell whether enough time has passed."""
    return clock >= since + policy.elapsed


@singledispatch
def closes_before(policy: OrderPolicy, contents: WindowContents, element: StageElement) -> bool:
    """Tell whether an element closes the window before it."""
    return False


@closes_before.register
def is_delta_exceeded(policy: DeltaPolicy, contents: WindowContents, element: StageElement) -> bool:
    """Compare an element with the first one that has a value."""
    values = (buffered.fields.get(policy.field) for buffered in contents)
    first = next((value for value in values if value is not None), None)
    return has_risen(first, element.fields.get(policy.field), policy.by)


@singledispatch
def closes_after(policy: OrderPolicy, contents: WindowContents, element: StageElement) -> bool:
    """Tell whether an element is the last of the window."""
    return False


@closes_after.register
def is_count_reached(policy: CountPolicy, contents: WindowContents, element: StageElement) -> bool:
    """Compare the number of elements."""
    return len(contents) == policy.n


@closes_after.register
def is_punctuation(policy: PunctuationPolicy, contents: WindowContents, element: StageElement) -> bool:
    """Evaluate the predicate on the element."""
    return matches_predicate(element.fields, policy.predicate)


@singledispatch
def evict_by_clock(policy: OrderPolicy, elements: TimedElements, clock: int) -> TimedElements:
    """Return the elements that the clock does not evict."""
    return elements


@evict_by_clock.register
def evict_by_arrival(policy: TimePolicy, elements: TimedElements, clock: int) -> TimedElements:
    """Evict elements by the clock at which they arrived."""
    return [(element, arrived_at) for element, arrived_at in elements if arrived_at + policy.elapsed > clock]


@singledispatch
def evict_before(policy: OrderPolicy, elements: TimedElements, incoming: StageElement) -> TimedElements:
    """Return the elements that an incoming one does not evict."""
    return elements


@evict_before.register
def evict_by_count(policy: CountPolicy, elements: TimedElements, incoming: StageElement) -> TimedElements:
    """Keep the last elements, so that there are n with the incoming one."""
    return elements[max(len(elements) - policy.n + 1, 0) :]


@evict_before.register
def evict_by_delta(policy: DeltaPolicy, elements: TimedElements, incoming: StageElement) -> TimedElements:
    """Evict the oldest elements while they are too far below the incoming one."""
    value = incoming.fields.get(policy.field)
    while elements and has_risen(elements[0][0].fields.get(policy.field), value, policy.by):
        elements = elements[1:]
    return elements


@singledispatch
def fires_before(policy: OrderPolicy, base: Any, element: StageElement) -> tuple[bool, Any]:
    """Tell whether an element emits the content before it, and return the base for the next one."""
    return False, base


@fires_before.register
def fires_by_delta(policy: DeltaPolicy, base: Any, element: StageElement) -> tuple[bool, Any]:
    """Compare an element with the one that fired last."""
    value = element.fields.get(policy.field)
    is_firing = has_risen(base, value, policy.by)
    return is_firing, value if is_firing or base is None else base


@singledispatch
def fires_after(policy: OrderPolicy, pending_count: int) -> bool:
    """Tell whether the content is emitted after an element, when so many elements are not yet emitted."""
    return False


@fires_after.register
def fires_by_count(policy: CountPolicy, pending_count: int) -> bool:
    """Compare the number of elements that are not yet emitted."""
    return pending_count >= policy.n


def has_risen(first: Any, current: Any, delta: float) -> bool:
    """Tell whether a field has risen by more than `delta`; false with a null."""
    return first is not None and current is not None and current - first > delta
