"""The protocol of engines that run cases, and the reference engine."""

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
    """The input of an engine: a plan, and batches with clock and watermark."""

    id: str
    plan: Plan
    batches: tuple[InputBatch, ...]


@dataclass(frozen=True)
class OpenWindow:
    """A window that is open after a batch, with its current values."""

    key: tuple[Any, ...]
    start: Instant
    end: Instant
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class ObservedBatch:
    """The output of one batch. `windows` is None if the engine does not expose its state."""

    panes: tuple[Pane, ...]
    late: tuple[LateRow, ...]
    windows: tuple[OpenWindow, ...] | None = None


ScriptResult: TypeAlias = Sequence[ObservedBatch] | PipelineError
"""The output of each batch, or the engine's reason for not running the script."""


class ConformanceEngine(Protocol):
    """Runs many scripts in one call, so that they can share expensive setup."""

    def run(self, scripts: Sequence[Script]) -> Iterable[ScriptResult]:
        """Yield the result of each script, in order."""
        ...


class ReferenceEngine:
    """Runs scripts on the reference evaluator, one after the other."""

    def run(self, scripts: Sequence[Script]) -> Iterable[ScriptResult]:
        """Yield the output of each batch of each script."""
        for script in scripts:
            evaluator = Evaluator(script.plan)
            yield [observe_batch(evaluator, batch) for batch in script.batches]


def observe_batch(evaluator: Evaluator, batch: InputBatch) -> ObservedBatch:
    """Run a batch and collect the open windows."""
    outcome = evaluator.run(batch)
    return ObservedBatch(outcome.panes, outcome.late, collect_open_windows(evaluator))


def collect_open_windows(evaluator: Evaluator) -> tuple[OpenWindow, ...] | None:
    """Return the open event-time windows with their current values."""
    stage = evaluator.plan.only_stage
    operator = evaluator.operators[stage.name]
    if not isinstance(operator, ReferenceWindowOperator):
        return None
    outputs = stage.aggregates
    return tuple(
        OpenWindow(window.key, window.start, window.end, compute_columns(outputs, window.elements))
        for window in operator.windows.values()
    )
