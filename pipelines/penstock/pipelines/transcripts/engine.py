"""What runs a case: the reference evaluator, or any engine that keeps this protocol."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from penstock.pipelines.errors import PipelineError
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.reference import Batch, Evaluator, Instant, LateRow, Pane
from penstock.pipelines.reference.grouping import Grouping
from penstock.pipelines.reference.values import values


@dataclass(frozen=True)
class Script:
    """What an engine is given: a plan, and batches that all have their clock and their watermark."""

    id: str
    plan: Plan
    batches: tuple[Batch, ...]


@dataclass(frozen=True)
class OpenWindow:
    """A window that is kept after a batch, with the values that its elements have."""

    key: tuple[Any, ...]
    start: Instant
    end: Instant
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Observed:
    """What one batch of a script brought about. `windows` is None where an engine does not show its state."""

    panes: tuple[Pane, ...]
    late: tuple[LateRow, ...]
    windows: tuple[OpenWindow, ...] | None = None


Run: TypeAlias = Sequence[Observed] | PipelineError
"""What each batch of a script brought about; or, in the engine's own words, why it does not run the script."""


class Engine(Protocol):
    """Runs many scripts in one call, so that it may let them share what is dear to start."""

    def run(self, scripts: Sequence[Script]) -> Iterable[Run]:
        """Yield for each script, in their order, what became of it."""
        ...


class ReferenceEngine:
    """The reference evaluator, one script after the other."""

    def run(self, scripts: Sequence[Script]) -> Iterable[Run]:
        """Yield for each script what each of its batches brought about."""
        for script in scripts:
            evaluator = Evaluator(script.plan)
            yield [observed(evaluator, batch) for batch in script.batches]


def observed(evaluator: Evaluator, batch: Batch) -> Observed:
    """Run a batch and look at what is open after it."""
    outcome = evaluator.run(batch)
    return Observed(outcome.panes, outcome.late, open_windows(evaluator))


def open_windows(evaluator: Evaluator) -> tuple[OpenWindow, ...] | None:
    """Return the windows of time that are open, with the values that they would show."""
    stage = evaluator.plan.stage
    kept = evaluator.windows[stage.name]
    if not isinstance(kept, Grouping):
        return None
    outputs = stage.aggregates
    return tuple(
        OpenWindow(window.key, window.start, window.end, values(outputs, window.elements))
        for window in kept.windows.values()
    )
