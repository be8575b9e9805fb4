"""Order windows: a key's records in their order, cut or kept by policies. Each window shows one pane."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.pipelines.plan.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling
from penstock.pipelines.reference.conditions import meets
from penstock.pipelines.reference.records import Element

Contents = list[Element]


@dataclass
class TumblingKey:
    """The open window of one key."""

    window: Tumbling
    held: Contents = field(default_factory=list)
    opened: int = 0

    def begin(self, clock: int) -> Iterator[Contents]:
        """Close by the clock, before the batch's records."""
        match self.window.close:
            case TimePolicy(elapsed) if self.held and clock >= self.opened + elapsed:
                yield self.closed()

    def take(self, element: Element, clock: int) -> Iterator[Contents]:
        """Let a record in; yield the window that it closes, before or after it came in."""
        if self.is_too_far(element):
            yield self.closed()
        if not self.held:
            self.opened = clock
        self.held.append(element)
        if self.is_complete(element):
            yield self.closed()

    def is_too_far(self, element: Element) -> bool:
        """Tell whether a delta policy closes the window before the record."""
        match self.window.close:
            case DeltaPolicy(field=name, by=by):
                first = next(
                    (held.fields[name] for held in self.held if held.fields.get(name) is not None), None
                )
                return rose(first, element.fields.get(name), by)
            case _:
                return False

    def is_complete(self, element: Element) -> bool:
        """Tell whether the record is the window's last."""
        match self.window.close:
            case CountPolicy(n):
                return len(self.held) == n
            case PunctuationPolicy(predicate):
                return meets(element.fields, predicate)
            case _:
                return False

    def closed(self) -> Contents:
        """Empty the window and return what it held."""
        contents, self.held = self.held, []
        return contents


@dataclass
class SlidingKey:
    """What one key holds, with the clock at which each record came, and since when something was not shown."""

    window: SlidingOrder
    held: list[tuple[Element, int]] = field(default_factory=list)
    unshown: int = 0
    unshown_since: int = 0
    base: Any = None

    def begin(self, clock: int) -> Iterator[Contents]:
        """Evict and show by the clock, before the batch's records."""
        match self.window.evict:
            case TimePolicy(elapsed):
                self.held = [(element, came) for element, came in self.held if came + elapsed > clock]
        match self.window.show:
            case TimePolicy(elapsed) if self.unshown and clock >= self.unshown_since + elapsed:
                yield from self.shown()

    def take(self, element: Element, clock: int) -> Iterator[Contents]:
        """Let a record in; yield what is shown before or after it came in."""
        match self.window.show:
            case DeltaPolicy(field=name, by=by):
                if rose(self.base, element.fields.get(name), by):
                    yield from self.shown()
                    self.base = element.fields[name]
                elif self.base is None:
                    self.base = element.fields.get(name)
        self.evict_for(element)
        self.held.append((element, clock))
        self.unshown_since = clock if self.unshown == 0 else self.unshown_since
        self.unshown += 1
        match self.window.show:
            case CountPolicy(n) if self.unshown >= n:
                yield from self.shown()

    def evict_for(self, coming: Element) -> None:
        """Drop what goes because a record comes in."""
        match self.window.evict:
            case CountPolicy(n):
                self.held = self.held[max(len(self.held) - n + 1, 0) :]
            case DeltaPolicy(field=name, by=by):
                while self.held and rose(self.held[0][0].fields.get(name), coming.fields.get(name), by):
                    self.held.pop(0)

    def shown(self) -> Iterator[Contents]:
        """Show what is held, if anything is."""
        self.unshown = 0
        if self.held:
            yield [element for element, _ in self.held]


def rose(first: Any, now: Any, by: float) -> bool:
    """Tell whether a field has risen by more than so much; with a null it has not."""
    return first is not None and now is not None and now - first > by


def key_state(window: Tumbling | SlidingOrder) -> TumblingKey | SlidingKey:
    """Return the state of a key that has no records yet."""
    match window:
        case Tumbling():
            return TumblingKey(window)
        case SlidingOrder():
            return SlidingKey(window)


def bounds(contents: Sequence[Element]) -> tuple[int, int]:
    """Return the least event time, and the greatest plus one."""
    times = [element.time for element in contents]
    return min(times), max(times) + 1
