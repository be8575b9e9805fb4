"""The cases of the semantics, worked out by hand, on the reference."""

from pathlib import Path

import pytest

from penstock.conformance import CaseVerdict, ReferenceEngine, run_files

CASES_FILE = Path(__file__).parent / "semantics_cases.yaml"
VERDICTS = list(run_files([CASES_FILE], ReferenceEngine()))


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda verdict: verdict.id)
def test_a_semantics_case_passes_on_the_reference(verdict: CaseVerdict) -> None:
    assert verdict.is_ok, (verdict.expected, verdict.actual)
    assert not verdict.not_compared
