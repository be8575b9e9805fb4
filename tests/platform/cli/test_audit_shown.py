"""What a person reads at the end of an audit: how many checks were made, and the first place that differs."""

import pytest

from penstock.platform.cli.audit import print_report
from penstock.quality.audit.verdict import (
    AuditDifference,
    AuditReport,
    AuditVerdict,
    judge_differences,
    unproven_verdict,
)

RIGHT = judge_differences("files", [], "12 files are there")
WRONG = judge_differences("offset ranges", [AuditDifference("sensors/1 offset 7", "it was read twice")], "")
OPEN = unproven_verdict("results", "no window is over yet")


@pytest.mark.parametrize(
    ("verdicts", "end"),
    [
        ([RIGHT, RIGHT], ["2 checks: 2 passed"]),
        ([RIGHT, OPEN], ["2 checks: 1 passed, 1 unproven"]),
        (
            [RIGHT, WRONG, OPEN],
            [
                "3 checks: 1 passed, 1 failed, 1 unproven",
                "first difference: sensors/1 offset 7: it was read twice",
            ],
        ),
    ],
)
def test_the_end_says_how_many_checks_are_right_and_hides_none_that_could_not_be_made(
    capsys: pytest.CaptureFixture[str], verdicts: list[AuditVerdict], end: list[str]
) -> None:
    print_report(AuditReport("s", 4, tuple(verdicts)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["files", "passed", "12", "files", "are", "there"]
    assert lines[len(verdicts) + 1 :] == end
