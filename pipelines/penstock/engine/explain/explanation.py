"""The output of `penstock explain`: the four questions, logical plan, state, and physical plan if known."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from penstock.engine.explain.logical_plan import LogicalNode, build_logical_plan
from penstock.engine.explain.parallelism import describe_concepts
from penstock.engine.explain.questions import Question, answer_questions
from penstock.engine.explain.state_retention import StateSummary, summarize_state
from penstock.engine.plan.codec import fingerprint, plan_to_dict
from penstock.engine.plan.stages import Plan


@dataclass(frozen=True)
class PhysicalOperator:
    """One operator of the physical plan, as described by the engine that runs it."""

    part: str
    tier: str
    tasks: int
    operation: str

    @property
    def placement(self) -> str:
        """Return the tier and the number of tasks."""
        return f"{self.tier}, {self.tasks} {'task' if self.tasks == 1 else 'tasks'}"


@dataclass(frozen=True)
class StateSize:
    """The size of a stage's state after a batch. Replaced rows count until they are compacted."""

    stage: str
    batch_id: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class Explanation:
    """An explained plan.

    `physical_plan` is empty if no engine was asked. `state_sizes` is empty if there is no state yet.
    """

    plan: Plan
    questions: tuple[tuple[str, tuple[Question, ...]], ...]
    logical_plan: tuple[LogicalNode, ...]
    state_summaries: tuple[StateSummary, ...]
    physical_plan: tuple[PhysicalOperator, ...] = ()
    state_sizes: tuple[StateSize, ...] = ()

    def as_text(self) -> str:
        """Return the explanation as text."""
        return "\n".join(self.iter_lines()) + "\n"

    def iter_lines(self) -> Iterator[str]:
        """Yield the lines of the text."""
        yield f"{self.plan.name}  (fingerprint {fingerprint(self.plan)[:12]})"
        for stage, stage_questions in self.questions:
            yield from title_lines(stage) if len(self.questions) > 1 else ()
            for question in stage_questions:
                yield from title_lines(f"{question.keyword} — {question.subject}")
                yield from (f"  {answer}" for answer in question.answers)
        yield from title_lines("logical plan")
        for node in self.logical_plan:
            yield from (f"  {line}" for line in node.iter_lines())
        if self.physical_plan:
            yield from title_lines("physical plan")
            yield from (f"  {part.part}: {part.operation} ({part.placement})" for part in self.physical_plan)
            yield from title_lines("elements and parallelism")
            yield from (
                f"  {concept_note.concept}: {concept_note.meaning}"
                for concept_note in describe_concepts(self.plan, self.physical_plan)
            )
        yield from title_lines("state")
        yield from (
            f"  {summary.item}: {summary.size}; kept until {summary.until}"
            for summary in self.state_summaries
        )
        for size in self.state_sizes:
            yield f"  {size.stage} after batch {size.batch_id}: {size.rows:,} rows, {size.bytes / 1e6:,.1f} MB"

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON-compatible dictionary."""
        return {
            "name": self.plan.name,
            "fingerprint": fingerprint(self.plan),
            "stages": {
                stage: {question.keyword: list(question.answers) for question in stage_questions}
                for stage, stage_questions in self.questions
            },
            "logical": [asdict(node) for node in self.logical_plan],
            "physical": [asdict(part) for part in self.physical_plan],
            "elements": {
                concept_note.concept: concept_note.meaning
                for concept_note in describe_concepts(self.plan, self.physical_plan)
            },
            "state": [asdict(summary) for summary in self.state_summaries],
            "sizes": [asdict(size) for size in self.state_sizes],
            "plan": plan_to_dict(self.plan),
        }


def title_lines(title: str) -> Iterator[str]:
    """Yield an empty line and the title."""
    yield ""
    yield title


def explain(
    plan: Plan, physical_plan: tuple[PhysicalOperator, ...] = (), state_sizes: tuple[StateSize, ...] = ()
) -> Explanation:
    """Explain a plan.

    `physical_plan` lists the operators that the engine would run; `state_sizes` has the current size of the state.
    """
    questions_by_stage = tuple(
        (stage.name, answer_questions(stage, plan.upstream_of(stage))) for stage in plan.stages
    )
    return Explanation(
        plan, questions_by_stage, build_logical_plan(plan), summarize_state(plan), physical_plan, state_sizes
    )
