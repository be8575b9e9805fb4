"""The processing elements of a pipeline, and its pipelined, task and data parallelism."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.engine.definition.phrases import join_phrases
from penstock.engine.explain.logical_plan import describe_step
from penstock.engine.plan.stages import Plan
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.windows.join_window import JoinWindow
from penstock.engine.windows.window import Window


class PlacedOperator(Protocol):
    """A physical operator: its name, its tier and its number of tasks."""

    @property
    def part(self) -> str:
        """The name of the operator."""

    @property
    def tier(self) -> str:
        """The tier that runs it: the executors or the driver."""

    @property
    def tasks(self) -> int:
        """The number of tasks that run in parallel."""


@dataclass(frozen=True)
class ConceptNote:
    """A concept of stream processing, and the parts of a pipeline to which it applies."""

    concept: str
    meaning: str


def describe_concepts(plan: Plan, operators: Sequence[PlacedOperator]) -> tuple[ConceptNote, ...]:
    """Describe which parts are stateful, and what runs in parallel."""
    parallel_operators = [f"{part.part} in {part.tasks} tasks" for part in operators if part.tasks > 1]
    return (
        ConceptNote("stateless", join_phrases(list(iter_stateless_parts(plan)))),
        ConceptNote("stateful", join_phrases(list(iter_stateful_parts(plan)) or ["nothing"])),
        ConceptNote("pipelined", describe_pipelining(plan)),
        ConceptNote("task parallel", describe_task_parallelism(plan)),
        ConceptNote(
            "data parallel",
            join_phrases(parallel_operators) if parallel_operators else "nothing: each part runs as one task",
        ),
    )


def iter_stateless_parts(plan: Plan) -> Iterator[str]:
    """Yield the parts that process each record by itself."""
    yield f"parsing of {join_phrases([source.name for source in plan.sources])}"
    for stage in plan.stages:
        input_steps = (step for prepared_input in stage.input_steps for step in prepared_input.steps)
        yield from (describe_step(step) for step in (*input_steps, *stage.steps))
    if not all(stage.window.is_record_ordered for stage in plan.source_stages):
        yield "assignment to windows"


def iter_stateful_parts(plan: Plan) -> Iterator[str]:
    """Yield the parts that depend on earlier records."""
    yield from (f"deduplication of {source.name}" for source in plan.sources if source.deduplication)
    for stage in plan.stages:
        if not stage.window.keeps_state:
            continue
        key = join_phrases(list(stage.key)) if stage.key else "all records"
        yield f"{stage.name} ({describe_keyed_state(stage.window)} by {key})"


def describe_keyed_state(window: Window) -> str:
    """Describe the state that a stage keeps by key."""
    if isinstance(window, StatefulFunction):
        return window.function.name.rpartition(":")[2]
    return "records" if isinstance(window, JoinWindow) else "windows"


def describe_pipelining(plan: Plan) -> str:
    """Describe what happens to a record in one pass, without waiting for other records."""
    has_only_ordered_stages = all(stage.window.is_record_ordered for stage in plan.source_stages)
    fused_work = (
        "parsing and steps" if has_only_ordered_stages else "parsing, steps, windows and partial sums"
    )
    sentence = f"{fused_work} run as one Spark stage, record by record"
    if len(plan.stages) > 1:
        names = join_phrases([stage.name for stage in plan.stages])
        sentence += f"; {names} run in one pass, without an intermediate table or topic"
    return sentence


def describe_task_parallelism(plan: Plan) -> str:
    """Describe what runs in parallel because it is different work."""
    sentence = (
        "this stream runs beside the other streams of its host; its state is compacted beside its batches"
    )
    shared_stages = [
        stage.name for stage in plan.stages if sum(stage.name in reader.inputs for reader in plan.stages) > 1
    ]
    if len(plan.source_stages) > 1:
        source_stage_names = join_phrases([stage.name for stage in plan.source_stages])
        sentence += f"; {source_stage_names} share one pass over the records"
    if shared_stages:
        sentence += f"; the readers of {join_phrases(shared_stages)} share one pass over its panes"
    return sentence
