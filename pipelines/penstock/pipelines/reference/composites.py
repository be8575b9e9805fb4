"""When: the rows of the contract's trigger table that are made of others."""

from collections.abc import Sequence

from penstock.pipelines.plan.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterPunctuation,
    AfterWatermark,
    Default,
    Every,
    OrFinally,
    Repeatedly,
    Trigger,
)
from penstock.pipelines.reference.triggers import (
    Came,
    Counting,
    Machine,
    Never,
    Now,
    Part,
    PastEnd,
    Readiness,
    Timing,
)


def machine_for(trigger: Trigger) -> Machine:
    """Return the trigger at its beginning."""
    match trigger:
        case AfterWatermark(None, None):
            return PastEnd()
        case AfterWatermark(early, late):
            return AroundEnd(early, AfterCount(1) if late is None else late)
        case AfterCount(n):
            return Counting(n)
        case AfterPunctuation(predicate):
            return Counting(1, predicate)
        case AfterProcessingTime() | Every():
            return Timing(trigger)
        case AfterAny(of):
            return AnyOf([machine_for(part) for part in of])
        case AfterAll(of):
            return AllOf([machine_for(part) for part in of])
        case AfterEach(of):
            return InTurn(of)
        case OrFinally(of, until):
            return Until(machine_for(of), machine_for(until))
        case Repeatedly(of):
            return Again(of)
        case Default():
            return Again(AfterWatermark())


class Together(Machine):
    """What `after_any` and `after_all` share: all parts see everything, and all end at the first firing."""

    def __init__(self, parts: list[Machine]) -> None:
        self.parts = parts

    def told(self, came: Came) -> None:
        """Tell every part."""
        for part in self.parts:
            part.told(came)

    def fired(self, now: Now) -> bool:
        """Finish."""
        return True

    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """Merge part by part."""
        machines = [(part.unshown, part.machine) for part in parts if isinstance(part.machine, Together)]
        for position, mine in enumerate(self.parts):
            mine.merge([Part(machine.parts[position], unshown) for unshown, machine in machines], now)


class AnyOf(Together):
    """`after_any`."""

    def readiness(self, now: Now) -> Readiness:
        """As ready as the readiest part."""
        return max(part.readiness(now) for part in self.parts)


class AllOf(Together):
    """`after_all`. A part once ready stays so by itself, since none is told of a firing before all are ready."""

    def readiness(self, now: Now) -> Readiness:
        """Ready when all are; at the end when the end is what one of them waited for."""
        found = [part.readiness(now) for part in self.parts]
        return Readiness.WAITING if Readiness.WAITING in found else max(found)


class InTurn(Machine):
    """`after_each`: the present part alone sees elements; when it finishes the next begins, from nothing."""

    def __init__(self, of: tuple[Trigger, ...]) -> None:
        self.of = of
        self.turn = 0
        self.present = machine_for(of[0])

    def told(self, came: Came) -> None:
        """Tell the present part."""
        self.present.told(came)

    def readiness(self, now: Now) -> Readiness:
        """As ready as the present part."""
        return self.present.readiness(now)

    def fired(self, now: Now) -> bool:
        """Go on to the next part when the present one finishes; finish with the last."""
        if not self.present.fired(now):
            return False
        if self.turn + 1 == len(self.of):
            return True
        self.turn += 1
        self.present = machine_for(self.of[self.turn])
        return False

    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """Go on from the least advanced of the merged windows."""
        machines = [(part, part.machine) for part in parts if isinstance(part.machine, InTurn)]
        self.turn = min(machine.turn for _, machine in machines)
        self.present = machine_for(self.of[self.turn])
        least = [
            Part(machine.present, part.unshown) for part, machine in machines if machine.turn == self.turn
        ]
        self.present.merge(least, now)


class Until(Machine):
    """`or_finally`: as `of`, until `until` fires or `of` finishes."""

    def __init__(self, of: Machine, until: Machine) -> None:
        self.of = of
        self.until = until

    def told(self, came: Came) -> None:
        """Tell both."""
        self.of.told(came)
        self.until.told(came)

    def readiness(self, now: Now) -> Readiness:
        """As ready as the readier."""
        return max(self.of.readiness(now), self.until.readiness(now))

    def fired(self, now: Now) -> bool:
        """Finish if `until` was ready; otherwise it was `of` that fired, and `until` keeps its count."""
        if self.until.readiness(now) is not Readiness.WAITING:
            return True
        return self.of.fired(now)

    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """Merge each with its like."""
        machines = [(part.unshown, part.machine) for part in parts if isinstance(part.machine, Until)]
        self.of.merge([Part(machine.of, unshown) for unshown, machine in machines], now)
        self.until.merge([Part(machine.until, unshown) for unshown, machine in machines], now)


class Again(Machine):
    """`repeatedly`: when the trigger finishes it begins again, whole, with no count and no timer left."""

    def __init__(self, of: Trigger) -> None:
        self.trigger = of
        self.of = machine_for(of)

    def told(self, came: Came) -> None:
        """Tell the trigger."""
        self.of.told(came)

    def readiness(self, now: Now) -> Readiness:
        """As ready as the trigger."""
        return self.of.readiness(now)

    def fired(self, now: Now) -> bool:
        """Begin again if the trigger finished; never finish."""
        if self.of.fired(now):
            self.of = machine_for(self.trigger)
        return False

    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """Merge the trigger."""
        inner = [Part(part.machine.of, part.unshown) for part in parts if isinstance(part.machine, Again)]
        self.of.merge(inner, now)


class AroundEnd(Machine):
    """`after_watermark(early, late)`: before the end, once at the end, after it."""

    def __init__(self, early: Trigger | None, late: Trigger) -> None:
        self.triggers = (early, late)
        self.passed = False
        self.begin()

    def begin(self) -> None:
        """Let early and late begin from nothing."""
        early, late = self.triggers
        self.early: Machine = Never() if early is None else Again(early)
        self.late: Machine = Again(late)

    def told(self, came: Came) -> None:
        """Tell whichever part has its time."""
        (self.late if self.passed else self.early).told(came)

    def readiness(self, now: Now) -> Readiness:
        """As ready as the part that has its time; at the end, ready once."""
        if self.passed:
            return self.late.readiness(now)
        return Readiness.AT_END if now.ended else self.early.readiness(now)

    def fired(self, now: Now) -> bool:
        """Pass the end, and with it leave all that was counted and timed; never finish."""
        if self.passed:
            self.late.fired(now)
        elif now.ended:
            self.passed = True
            self.begin()
        else:
            self.early.fired(now)
        return False

    def merge(self, parts: Sequence[Part], now: Now) -> None:
        """Merge early with early, late with late; the end counts as passed if it lies behind the watermark."""
        machines = [(part.unshown, part.machine) for part in parts if isinstance(part.machine, AroundEnd)]
        self.early.merge([Part(machine.early, unshown) for unshown, machine in machines], now)
        self.late.merge([Part(machine.late, unshown) for unshown, machine in machines], now)
        self.passed = now.ended
