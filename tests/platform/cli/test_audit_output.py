"""The output of an audit: its verdicts, their counts, and the first difference."""

import pytest

from penstock.platform.cli.commands.audit import print_report
from penstock.quality.audit.verdict import (
    AuditDifference,
    AuditReport,
    AuditVerdict,
    judge_differences,
    unproven_outcome,
)

PASSED = judge_differences([], "12 files are there").as_verdict("files")
DIFFERENCE = AuditDifference("sensors/1 offset 7", "it was read twice")
FAILED = judge_differences([DIFFERENCE], "").as_verdict("offset ranges")
UNPROVEN = unproven_outcome("no window is over yet").as_verdict("results")


@pytest.mark.parametrize(
    ("verdicts", "end"),
    [
        ([PASSED, PASSED], ["2 checks: 2 passed"]),
        ([PASSED, UNPROVEN], ["2 checks: 1 passed, 1 unproven"]),
        (
            [PASSED, FAILED, UNPROVEN],
            [
                "3 checks: 1 passed, 1 failed, 1 unproven",
                "first difference: sensors/1 offset 7: it was read twice",
            ],
        ),
    ],
)
def test_the_last_lines_count_passed_failed_and_unproven_checks(
    capsys: pytest.CaptureFixture[str], verdicts: list[AuditVerdict], end: list[str]
) -> None:
    print_report(AuditReport("s", 4, tuple(verdicts)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["files", "passed", "12", "files", "are", "there"]
    assert lines[len(verdicts) + 1 :] == end
