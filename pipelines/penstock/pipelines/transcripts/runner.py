"""Run cases through an engine and say what became of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.pipelines.errors import NotInContractError, PipelineError, TranscriptError
from penstock.pipelines.transcripts.case import Case, case_of
from penstock.pipelines.transcripts.engine import Engine, Run
from penstock.pipelines.transcripts.files import nodes_in
from penstock.pipelines.transcripts.form import NAMELESS, name_of, told
from penstock.pipelines.transcripts.verdict import Verdict, judged


def run_files(paths: Iterable[Path], engine: Engine, ids: Sequence[str] = ()) -> Iterator[Verdict]:
    """Run the cases of these files, or those of them that are named; yield a verdict each, in their order.

    A case that cannot be run is not ok. A name that no file has is refused.
    """
    yield from run_nodes(cases_in(paths, ids), engine)


@dataclass(frozen=True)
class Found:
    """A case as its schema has it, and where it stands."""

    node: Mapping[str, Any]
    path: Path
    number: int

    @property
    def place(self) -> str:
        """The file, and which case of it: by its id, or by its number where it has none."""
        name = name_of(self.node)
        return f"{self.path}, case {f'number {self.number}' if name == NAMELESS else name}"


def found_in(paths: Iterable[Path], ids: Sequence[str] = ()) -> list[Found]:
    """Return the cases of these files, or those that are named, with their places."""
    paths = list(paths)
    found = [Found(node, path, n) for path in paths for n, node in enumerate(nodes_in(path), 1)]
    if not found:
        raise TranscriptError(f"{', '.join(map(str, paths))}: there is no case. Name a file of cases")
    missing = [name for name in ids if name not in {name_of(case.node) for case in found}]
    if missing:
        raise TranscriptError(f"no case has the id {', '.join(missing)}; the files hold {len(found)} cases")
    return [case for case in found if not ids or name_of(case.node) in ids]


def cases_in(paths: Iterable[Path], ids: Sequence[str] = ()) -> list[Mapping[str, Any]]:
    """Return the cases of these files as their schema has them, or those that are named."""
    return [case.node for case in found_in(paths, ids)]


def run_nodes(nodes: Sequence[Mapping[str, Any]], engine: Engine) -> Iterator[Verdict]:
    """Run cases as their schema has them, all in one call of the engine."""
    read = [readable(node) for node in nodes]
    runs = iter(engine.run([case.script for case in read if isinstance(case, Case)]))
    for node, case in zip(nodes, read, strict=True):
        if isinstance(case, Case):
            yield verdict_on(node, case, next(runs))
        else:
            yield refused(node, case) if isinstance(case, NotInContractError) else malformed(node, case)


def readable(node: Mapping[str, Any]) -> Case | TranscriptError:
    """Return the case, or why it cannot be run."""
    try:
        return case_of(node)
    except TranscriptError as problem:
        return problem


def verdict_on(node: Mapping[str, Any], case: Case, run: Run) -> Verdict:
    """Return the verdict on a run; what a case expects may be as broken as the rest of it."""
    if isinstance(run, PipelineError):
        return refused(node, run)
    try:
        return judged(case, run)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        return malformed(node, TranscriptError(f"what it expects is not of the schema: {told(problem)}"))


def refused(node: Mapping[str, Any], problem: PipelineError) -> Verdict:
    """Return the verdict on a case that cannot be run."""
    steps = node.get("steps")
    listed = steps if isinstance(steps, list) else []
    expected = [step["expect"] for step in listed if isinstance(step, Mapping) and "expect" in step]
    informs = bool(node.get("engine_specific"))
    return Verdict(name_of(node), False, expected, {"error": str(problem)}, informs)


def malformed(node: Mapping[str, Any], problem: TranscriptError) -> Verdict:
    """Return the verdict on a case that is not of the schema."""
    return replace(refused(node, problem), malformed=str(problem))


def passed(verdicts: Iterable[Verdict], say: Callable[[Verdict], None]) -> bool:
    """Say each verdict as it comes; tell whether all cases that may fail the run are as expected."""
    good = True
    for verdict in verdicts:
        say(verdict)
        good = good and (verdict.ok or verdict.engine_specific)
    return good
