"""From a trigger of the plan to the machine that runs it."""

from itertools import count

from penstock.pipelines.fold.composites import Again, AroundEnd, InTurn, Silent, Together, Until
from penstock.pipelines.fold.leaves import Counted, PastEnd, Timed
from penstock.pipelines.fold.machine import Machine
from penstock.pipelines.plan import triggers as plan


def machine(trigger: plan.Trigger) -> Machine:
    """The machine for a trigger. Its columns are numbered in the order in which its parts are written."""
    return _Compiler().machine(trigger)


class _Compiler:
    def __init__(self) -> None:
        self._numbers = count()

    def machine(self, trigger: plan.Trigger) -> Machine:
        match trigger:
            case plan.Default():
                return Again(PastEnd())
            case plan.AfterWatermark(None, None):
                return PastEnd()
            case plan.AfterWatermark(early, late):
                return AroundEnd(self._name("passed"), self._early(early), self._late(late))
            case plan.AfterCount(n):
                return Counted(self._name("count"), n)
            case plan.AfterPunctuation(predicate):
                return Counted(self._name("punctuation"), 1, predicate)
            case plan.AfterProcessingTime(delay):
                return Timed(self._name("timer"), delay)
            case plan.Every(period, offset):
                return Timed(self._name("timer"), offset, period)
            case plan.AfterAny(of):
                return Together([self.machine(part) for part in of], all_of_them=False)
            case plan.AfterAll(of):
                return Together([self.machine(part) for part in of], all_of_them=True)
            case plan.AfterEach(of):
                return InTurn(self._name("turn"), [self.machine(part) for part in of])
            case plan.OrFinally(of, until):
                return Until(self.machine(of), self.machine(until))
            case plan.Repeatedly(of):
                return Again(self.machine(of))

    def _early(self, trigger: plan.Trigger | None) -> Machine:
        return Silent() if trigger is None else Again(self.machine(trigger))

    def _late(self, trigger: plan.Trigger | None) -> Machine:
        return Again(self.machine(plan.AfterCount(1) if trigger is None else trigger))

    def _name(self, word: str) -> str:
        return f"trigger_{next(self._numbers)}_{word}"
