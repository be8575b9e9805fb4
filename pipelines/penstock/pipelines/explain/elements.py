"""A pipeline in the words that the field has for its parts: processing elements, and three kinds of parallelism."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.pipelines.explain import words
from penstock.pipelines.explain.keeping import keeps_nothing
from penstock.pipelines.explain.logical import stepped
from penstock.pipelines.plan import PairWindow, Plan, Remembering, Window
from penstock.pipelines.plan.windows import in_order


class Part(Protocol):
    """A part of what runs: how it is called, and in how many tasks it runs."""

    @property
    def part(self) -> str:
        """Its name."""

    @property
    def tier(self) -> str:
        """Where it runs."""

    @property
    def tasks(self) -> int:
        """How many of it run at once."""


@dataclass(frozen=True)
class Element:
    """A word of the field, and what of a pipeline it means."""

    word: str
    means: str


def elements(plan: Plan, running: Sequence[Part]) -> tuple[Element, ...]:
    """Say which parts keep something from record to record, and what runs at the same time as what."""
    wide = [f"{part.part} in {part.tasks} tasks" for part in running if part.tasks > 1]
    return (
        Element("stateless", words.joined(list(stateless(plan)))),
        Element("stateful", words.joined(list(stateful(plan)) or ["nothing"])),
        Element("pipelined", pipelined(plan)),
        Element("task parallel", beside(plan)),
        Element("data parallel", words.joined(wide) if wide else "nothing: each part is one task"),
    )


def stateless(plan: Plan) -> Iterator[str]:
    """Yield what judges each record by itself."""
    yield f"parsing of {words.joined([source.name for source in plan.sources])}"
    for stage in plan.stages:
        own = (step for each in stage.prepared for step in each.steps)
        yield from (stepped(step) for step in (*own, *stage.steps))
    if not all(in_order(stage.window) for stage in plan.firsts):
        yield "assignment to windows"


def stateful(plan: Plan) -> Iterator[str]:
    """Yield what needs to know what came before."""
    yield from (f"repeats of {source.name}" for source in plan.sources if source.deduplication)
    for stage in plan.stages:
        if keeps_nothing(stage):
            continue
        key = words.joined(list(stage.key)) if stage.key else "all records"
        yield f"{stage.name} ({held(stage.window)} by {key})"


def held(window: Window) -> str:
    """Say what is kept by key."""
    if isinstance(window, Remembering):
        return window.function.name.rpartition(":")[2]
    return "records" if isinstance(window, PairWindow) else "windows"


def pipelined(plan: Plan) -> str:
    """Say what is done with a record in one pass, without waiting for the others."""
    single = all(in_order(stage.window) for stage in plan.firsts)
    done = "parsing and steps" if single else "parsing, steps, windows and partial sums"
    said = f"{done} are one stage of Spark: a record goes through all at once"
    if len(plan.stages) > 1:
        names = words.joined([stage.name for stage in plan.stages])
        said += f"; {names} are folded in one pass, with no table or topic between them"
    return said


def beside(plan: Plan) -> str:
    """Say what runs side by side because it is something else."""
    said = "this stream beside the others of its host; merging of state beside its batches"
    several = [
        stage.name for stage in plan.stages if sum(stage.name in each.inputs for each in plan.stages) > 1
    ]
    if len(plan.firsts) > 1:
        firsts = words.joined([stage.name for stage in plan.firsts])
        said += f"; {firsts} go by the records side by side, in one pass over them"
    if several:
        said += f"; what reads {words.joined(several)} shares one pass over it"
    return said
