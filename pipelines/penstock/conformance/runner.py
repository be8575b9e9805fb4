"""Runs cases on an engine and returns a verdict for each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.conformance.case import Case, parse_case
from penstock.conformance.case_files import read_case_nodes
from penstock.conformance.engines import ConformanceEngine, ScriptResult
from penstock.conformance.field_validation import UNNAMED_CASE, case_name, describe_python_error
from penstock.conformance.verdict import CaseVerdict, judge_case
from penstock.engine.errors import PipelineError, TranscriptError, UnsupportedCaseError


def run_files(
    paths: Iterable[Path], engine: ConformanceEngine, ids: Sequence[str] = ()
) -> Iterator[CaseVerdict]:
    """Run all cases of the files, or those with the given ids; yield a verdict for each, in order.

    A case that cannot run fails. An id that no file has raises an error.
    """
    yield from run_cases(load_case_nodes(paths, ids), engine)


@dataclass(frozen=True)
class LocatedCase:
    """A case in the schema, with its location."""

    node: Mapping[str, Any]
    path: Path
    number: int

    @property
    def location(self) -> str:
        """The file and the id of the case, or its number if it has no id."""
        name = case_name(self.node)
        return f"{self.path}, case {f'number {self.number}' if name == UNNAMED_CASE else name}"


def find_cases(paths: Iterable[Path], ids: Sequence[str] = ()) -> list[LocatedCase]:
    """Return the cases of the files, or those with the given ids, with their locations."""
    paths = list(paths)
    cases = [LocatedCase(node, path, n) for path in paths for n, node in enumerate(read_case_nodes(path), 1)]
    if not cases:
        raise TranscriptError(f"{', '.join(map(str, paths))}: no cases found. Pass a case file")
    missing = [name for name in ids if name not in {case_name(case.node) for case in cases}]
    if missing:
        raise TranscriptError(f"no case has the id {', '.join(missing)}; the files have {len(cases)} cases")
    return [case for case in cases if not ids or case_name(case.node) in ids]


def load_case_nodes(paths: Iterable[Path], ids: Sequence[str] = ()) -> list[Mapping[str, Any]]:
    """Return the cases of the files in the schema, or those with the given ids."""
    return [case.node for case in find_cases(paths, ids)]


def run_cases(nodes: Sequence[Mapping[str, Any]], engine: ConformanceEngine) -> Iterator[CaseVerdict]:
    """Run cases of the schema in one call of the engine."""
    parsed = [try_parse_case(node) for node in nodes]
    results = iter(engine.run([case.script for case in parsed if isinstance(case, Case)]))
    for node, case in zip(nodes, parsed, strict=True):
        if isinstance(case, Case):
            yield build_verdict(node, case, next(results))
        else:
            yield (
                refused_verdict(node, case)
                if isinstance(case, UnsupportedCaseError)
                else malformed_verdict(node, case)
            )


def try_parse_case(node: Mapping[str, Any]) -> Case | TranscriptError:
    """Return the case, or the reason why it cannot run."""
    try:
        return parse_case(node)
    except TranscriptError as problem:
        return problem


def build_verdict(node: Mapping[str, Any], case: Case, result: ScriptResult) -> CaseVerdict:
    """Return the verdict on a run. Expectations can be invalid, too."""
    if isinstance(result, PipelineError):
        return refused_verdict(node, result)
    try:
        return judge_case(case, result)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        return malformed_verdict(
            node,
            TranscriptError(f"its expectation does not match the schema: {describe_python_error(problem)}"),
        )


def refused_verdict(node: Mapping[str, Any], problem: PipelineError) -> CaseVerdict:
    """Return the verdict on a case that cannot run."""
    steps = node.get("steps")
    step_list = steps if isinstance(steps, list) else []
    expected = [step["expect"] for step in step_list if isinstance(step, Mapping) and "expect" in step]
    is_engine_specific = bool(node.get("engine_specific"))
    return CaseVerdict(case_name(node), False, expected, {"error": str(problem)}, is_engine_specific)


def malformed_verdict(node: Mapping[str, Any], problem: TranscriptError) -> CaseVerdict:
    """Return the verdict on a case that does not match the schema."""
    return replace(refused_verdict(node, problem), malformed=str(problem))


def report_verdicts(verdicts: Iterable[CaseVerdict], report: Callable[[CaseVerdict], None]) -> bool:
    """Report each verdict, and tell whether all cases pass that can fail the run."""
    all_passed = True
    for verdict in verdicts:
        report(verdict)
        all_passed = all_passed and (verdict.is_ok or verdict.engine_specific)
    return all_passed
