"""What `penstock explain` prints: the questions, the logical plan, the state, and what runs it, where known."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from penstock.pipelines.explain.elements import elements
from penstock.pipelines.explain.keeping import Kept, kept
from penstock.pipelines.explain.logical import Node, logical
from penstock.pipelines.explain.questions import Question, questions
from penstock.pipelines.plan import Plan, fingerprint, to_dict


@dataclass(frozen=True)
class Running:
    """A part of the physical plan, as the engine that runs it describes it."""

    part: str
    tier: str
    tasks: int
    does: str

    @property
    def place(self) -> str:
        """Return where it runs, in how many tasks."""
        return f"{self.tier}, {self.tasks} {'task' if self.tasks == 1 else 'tasks'}"


@dataclass(frozen=True)
class Size:
    """How much a stage keeps after a batch; rows that younger ones stand for are counted, too."""

    stage: str
    batch_id: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class Explanation:
    """A plan explained; `running` is empty where no engine was asked, `sizes` where nothing is kept yet."""

    plan: Plan
    questions: tuple[tuple[str, tuple[Question, ...]], ...]
    logical: tuple[Node, ...]
    kept: tuple[Kept, ...]
    running: tuple[Running, ...] = ()
    sizes: tuple[Size, ...] = ()

    def text(self) -> str:
        """Return it for people."""
        return "\n".join(self.lines()) + "\n"

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text."""
        yield f"{self.plan.name}  (fingerprint {fingerprint(self.plan)[:12]})"
        for stage, asked in self.questions:
            yield from titled(stage) if len(self.questions) > 1 else ()
            for question in asked:
                yield from titled(f"{question.word} — {question.about}")
                yield from (f"  {answer}" for answer in question.answers)
        yield from titled("logical plan")
        for node in self.logical:
            yield from (f"  {line}" for line in node.lines())
        if self.running:
            yield from titled("physical plan")
            yield from (f"  {part.part}: {part.does} ({part.place})" for part in self.running)
            yield from titled("elements and parallelism")
            yield from (f"  {each.word}: {each.means}" for each in elements(self.plan, self.running))
        yield from titled("state")
        yield from (f"  {item.what}: {item.size}; kept until {item.until}" for item in self.kept)
        for size in self.sizes:
            yield f"  {size.stage} after batch {size.batch_id}: {size.rows:,} rows, {size.bytes / 1e6:,.1f} MB"

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "name": self.plan.name,
            "fingerprint": fingerprint(self.plan),
            "stages": {stage: {q.word: list(q.answers) for q in asked} for stage, asked in self.questions},
            "logical": [asdict(node) for node in self.logical],
            "physical": [asdict(part) for part in self.running],
            "elements": {each.word: each.means for each in elements(self.plan, self.running)},
            "state": [asdict(item) for item in self.kept],
            "sizes": [asdict(size) for size in self.sizes],
            "plan": to_dict(self.plan),
        }


def titled(title: str) -> Iterator[str]:
    """Yield a title."""
    yield ""
    yield title


def explain(plan: Plan, running: tuple[Running, ...] = (), sizes: tuple[Size, ...] = ()) -> Explanation:
    """Explain a plan; `running` is what the engine says of how it runs it, `sizes` how much it keeps now."""
    asked = tuple((stage.name, questions(stage, plan.feeding(stage))) for stage in plan.stages)
    return Explanation(plan, asked, logical(plan), kept(plan), running, sizes)
