"""Checks that contracts, pipelines and suites can be loaded."""

from collections.abc import Iterator
from typing import get_args

from penstock.ingestion.contracts import list_contract_names
from penstock.pipelines import catalog
from penstock.platform.doctor.finding import DoctorFinding
from penstock.platform.services.definition_problems import DefinitionKind, find_definition_problems
from penstock.quality.expectations.suite import list_suites


def check_definitions() -> Iterator[DoctorFinding]:
    """Load each file as its users do, and yield a finding for each problem, or one that all of a kind are valid.

    An invalid file blocks only what it defines.
    """
    problems = list(find_definition_problems())
    counts = {
        "contract": len(list_contract_names()),
        "pipeline": len(catalog.pipeline_names()),
        "suite": len(list_suites()),
    }
    for kind in get_args(DefinitionKind):
        lines = [
            line for problem in problems if problem.kind == kind for line in problem.message.splitlines()
        ]
        yield from (DoctorFinding(f"{kind}s", False, line) for line in lines)
        if not lines:
            yield DoctorFinding(f"{kind}s", True, f"all {counts[kind]} are valid")
