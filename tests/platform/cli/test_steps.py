"""A step that takes long shows what it is doing, in a terminal or not."""

import pytest

from penstock.platform.cli.steps import ProgressLines, StepPrinter


class Clock:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_an_audit_of_four_minutes_is_not_silent_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    """It once printed one line, after 243 seconds."""
    clock = Clock()
    lines = ProgressLines("audit orders_minute", clock)
    clock.at += 10
    lines.print_line()
    lines.report("check 3 of 12: offset ranges")
    lines.report("recomputed 1,204 of 4,458 records, batch 1 of 4")
    clock.at += 11
    lines.print_line()
    assert capsys.readouterr().err.splitlines() == [
        "… audit orders_minute (10 s)",
        "… audit orders_minute: recomputed 1,204 of 4,458 records, batch 1 of 4 (21 s)",
    ]


def test_a_short_step_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with StepPrinter().step("look around") as report_progress:
        report_progress("here")
    assert capsys.readouterr().err == "✓ look around\n"
