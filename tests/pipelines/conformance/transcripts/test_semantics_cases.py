"""The contract, case by case: a table of cases, worked out by hand."""

from pathlib import Path

import pytest

from penstock.conformance import CaseVerdict, ReferenceEngine, run_files

TABLE = Path(__file__).parent / "semantics_cases.yaml"
VERDICTS = list(run_files([TABLE], ReferenceEngine()))


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda verdict: verdict.id)
def test_the_case_comes_out_as_the_contract_says(verdict: CaseVerdict) -> None:
    assert verdict.is_ok, (verdict.expected, verdict.actual)
    assert not verdict.not_compared
