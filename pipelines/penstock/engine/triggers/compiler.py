"""Compile a trigger of the plan into the machine that runs it."""

from itertools import count

from penstock.engine.plan import triggers as plan
from penstock.engine.triggers.base import TriggerMachine
from penstock.engine.triggers.composite import (
    EarlyLateMachine,
    NeverMachine,
    OrFinallyMachine,
    ParallelMachine,
    RepeatedlyMachine,
    SequenceMachine,
)
from penstock.engine.triggers.primitive import CountMachine, EndOfWindowMachine, ProcessingTimeMachine


def compile_trigger(trigger: plan.Trigger) -> TriggerMachine:
    """Return the machine for a trigger.

    State columns are numbered in the order in which its parts are written.
    """
    return _TriggerCompiler().compile_machine(trigger)


class _TriggerCompiler:
    def __init__(self) -> None:
        self._counter = count()

    def compile_machine(self, trigger: plan.Trigger) -> TriggerMachine:
        match trigger:
            case plan.Default():
                return RepeatedlyMachine(EndOfWindowMachine())
            case plan.AfterWatermark(None, None):
                return EndOfWindowMachine()
            case plan.AfterWatermark(early, late):
                return EarlyLateMachine(
                    self._next_column("past_end"), self._compile_early(early), self._compile_late(late)
                )
            case plan.AfterCount(n):
                return CountMachine(self._next_column("count"), n)
            case plan.AfterPunctuation(predicate):
                return CountMachine(self._next_column("punctuation"), 1, predicate)
            case plan.AfterProcessingTime(delay):
                return ProcessingTimeMachine(self._next_column("timer"), delay)
            case plan.Every(period, offset):
                return ProcessingTimeMachine(self._next_column("timer"), offset, period)
            case plan.AfterAny(of):
                return ParallelMachine([self.compile_machine(part) for part in of], requires_all=False)
            case plan.AfterAll(of):
                return ParallelMachine([self.compile_machine(part) for part in of], requires_all=True)
            case plan.AfterEach(of):
                return SequenceMachine(
                    self._next_column("active_part"), [self.compile_machine(part) for part in of]
                )
            case plan.OrFinally(of, until):
                return OrFinallyMachine(self.compile_machine(of), self.compile_machine(until))
            case plan.Repeatedly(of):
                return RepeatedlyMachine(self.compile_machine(of))

    def _compile_early(self, trigger: plan.Trigger | None) -> TriggerMachine:
        return NeverMachine() if trigger is None else RepeatedlyMachine(self.compile_machine(trigger))

    def _compile_late(self, trigger: plan.Trigger | None) -> TriggerMachine:
        return RepeatedlyMachine(self.compile_machine(plan.AfterCount(1) if trigger is None else trigger))

    def _next_column(self, suffix: str) -> str:
        return f"trigger_{next(self._counter)}_{suffix}"
