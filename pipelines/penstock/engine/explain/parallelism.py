"""A pipeline in the words that the field has for its parts: processing elements, and three kinds of parallelism."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.engine.explain import phrases
from penstock.engine.explain.logical_plan import describe_step
from penstock.engine.explain.state_retention import is_stateless
from penstock.engine.plan import JoinWindow, Plan, StatefulFunction, Window
from penstock.engine.plan.windows import is_record_ordered


class PlacedOperator(Protocol):
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
class ConceptNote:
    """A word of the field, and what of a pipeline it means."""

    concept: str
    meaning: str


def describe_concepts(plan: Plan, operators: Sequence[PlacedOperator]) -> tuple[ConceptNote, ...]:
    """Say which parts keep something from record to record, and what runs at the same time as what."""
    parallel_operators = [f"{part.part} in {part.tasks} tasks" for part in operators if part.tasks > 1]
    return (
        ConceptNote("stateless", phrases.join_phrases(list(iter_stateless_parts(plan)))),
        ConceptNote("stateful", phrases.join_phrases(list(iter_stateful_parts(plan)) or ["nothing"])),
        ConceptNote("pipelined", describe_pipelining(plan)),
        ConceptNote("task parallel", describe_task_parallelism(plan)),
        ConceptNote(
            "data parallel",
            phrases.join_phrases(parallel_operators)
            if parallel_operators
            else "nothing: each part is one task",
        ),
    )


def iter_stateless_parts(plan: Plan) -> Iterator[str]:
    """Yield what judges each record by itself."""
    yield f"parsing of {phrases.join_phrases([source.name for source in plan.sources])}"
    for stage in plan.stages:
        input_steps = (step for prepared_input in stage.input_steps for step in prepared_input.steps)
        yield from (describe_step(step) for step in (*input_steps, *stage.steps))
    if not all(is_record_ordered(stage.window) for stage in plan.source_stages):
        yield "assignment to windows"


def iter_stateful_parts(plan: Plan) -> Iterator[str]:
    """Yield what needs to know what came before."""
    yield from (f"repeats of {source.name}" for source in plan.sources if source.deduplication)
    for stage in plan.stages:
        if is_stateless(stage):
            continue
        key = phrases.join_phrases(list(stage.key)) if stage.key else "all records"
        yield f"{stage.name} ({describe_keyed_state(stage.window)} by {key})"


def describe_keyed_state(window: Window) -> str:
    """Say what is kept by key."""
    if isinstance(window, StatefulFunction):
        return window.function.name.rpartition(":")[2]
    return "records" if isinstance(window, JoinWindow) else "windows"


def describe_pipelining(plan: Plan) -> str:
    """Say what is done with a record in one pass, without waiting for the others."""
    has_only_ordered_stages = all(is_record_ordered(stage.window) for stage in plan.source_stages)
    fused_work = (
        "parsing and steps" if has_only_ordered_stages else "parsing, steps, windows and partial sums"
    )
    sentence = f"{fused_work} are one stage of Spark: a record goes through all at once"
    if len(plan.stages) > 1:
        names = phrases.join_phrases([stage.name for stage in plan.stages])
        sentence += f"; {names} are folded in one pass, with no table or topic between them"
    return sentence


def describe_task_parallelism(plan: Plan) -> str:
    """Say what runs side by side because it is something else."""
    sentence = "this stream beside the others of its host; merging of state beside its batches"
    shared_stages = [
        stage.name for stage in plan.stages if sum(stage.name in reader.inputs for reader in plan.stages) > 1
    ]
    if len(plan.source_stages) > 1:
        source_stage_names = phrases.join_phrases([stage.name for stage in plan.source_stages])
        sentence += f"; {source_stage_names} go by the records side by side, in one pass over them"
    if shared_stages:
        sentence += f"; what reads {phrases.join_phrases(shared_stages)} shares one pass over it"
    return sentence
