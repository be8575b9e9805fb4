"""What runs a case: the reference evaluator, or any engine that keeps this protocol."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from penstock.conformance.reference import Evaluator, InputBatch, Instant, LateRow, Pane
from penstock.conformance.reference.aggregates import compute_columns
from penstock.conformance.reference.windowed import ReferenceWindowOperator
from penstock.engine.errors import PipelineError
from penstock.engine.plan.stages import Plan


@dataclass(frozen=True)
class Script:
    """What an engine is given: a plan, and batches that all have their clock and their watermark."""

    id: str
    plan: Plan
    batches: tuple[InputBatch, ...]


@dataclass(frozen=True)
class OpenWindow:
    """A window that is kept after a batch, with the values that its elements have."""

    key: tuple[Any, ...]
    start: Instant
    end: Instant
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class ObservedBatch:
    """What one batch of a script brought about. `windows` is None where an engine does not show its state."""

    panes: tuple[Pane, ...]
    late: tuple[LateRow, ...]
    windows: tuple[OpenWindow, ...] | None = None


ScriptResult: TypeAlias = Sequence[ObservedBatch] | PipelineError
"""What each batch of a script brought about; or, in the engine's own words, why it does not run the script."""


class ConformanceEngine(Protocol):
    """Runs many scripts in one call, so that it may let them share what is dear to start."""

    def run(self, scripts: Sequence[Script]) -> Iterable[ScriptResult]:
        """Yield for each script, in their order, what became of it."""
        ...


class ReferenceEngine:
    """The reference evaluator, one script after the other."""

    def run(self, scripts: Sequence[Script]) -> Iterable[ScriptResult]:
        """Yield for each script what each of its batches brought about."""
        for script in scripts:
            evaluator = Evaluator(script.plan)
            yield [observe_batch(evaluator, batch) for batch in script.batches]


def observe_batch(evaluator: Evaluator, batch: InputBatch) -> ObservedBatch:
    """Run a batch and look at what is open after it."""
    outcome = evaluator.run(batch)
    return ObservedBatch(outcome.panes, outcome.late, collect_open_windows(evaluator))


def collect_open_windows(evaluator: Evaluator) -> tuple[OpenWindow, ...] | None:
    """Return the windows of time that are open, with the values that they would show."""
    stage = evaluator.plan.only_stage
    operator = evaluator.operators[stage.name]
    if not isinstance(operator, ReferenceWindowOperator):
        return None
    outputs = stage.aggregates
    return tuple(
        OpenWindow(window.key, window.start, window.end, compute_columns(outputs, window.elements))
        for window in operator.windows.values()
    )
