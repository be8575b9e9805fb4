"""Verdicts: the results of all checks of a case, with expected and actual output."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.conformance.bipartite_matching import can_pair_all
from penstock.conformance.case import Case, CaseCheck, expected_panes
from penstock.conformance.engines import ObservedBatch, OpenWindow
from penstock.conformance.pane_comparison import (
    CasePane,
    find_uncompared_fields,
    matches_expected,
    to_case_unit,
)
from penstock.conformance.reference import LateRow
from penstock.conformance.reference.window_assignment import find_containing_windows

CheckAnswer = tuple[bool, Any]


@dataclass(frozen=True)
class CaseVerdict:
    """The output line of a case. `malformed` says what is wrong with a case that does not match the schema."""

    id: str
    is_ok: bool
    expected: Any
    actual: Any
    engine_specific: bool = False
    not_compared: tuple[str, ...] = ()
    malformed: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the line as JSON types; omit fields that are false or empty, except the first four."""
        line = {"id": self.id, "ok": self.is_ok, "expected": self.expected, "got": self.actual}
        if self.engine_specific:
            line["engine_specific"] = True
        if self.not_compared:
            line["not_compared"] = list(self.not_compared)
        return line


def judge_case(case: Case, observed_batches: Sequence[ObservedBatch]) -> CaseVerdict:
    """Run every check of a case."""
    answers: list[CheckAnswer] = []
    compared_batches = 0
    for check in case.checks:
        answers.append(
            CHECK_FUNCTIONS[check.kind](
                case,
                check,
                observed_batches[compared_batches : check.after_batches],
                observed_batches[: check.after_batches],
            )
        )
        compared_batches = check.after_batches if check.kind == "expect" else compared_batches
    all_met = all(is_met for is_met, _ in answers)
    uncompared = {
        name
        for check in case.checks
        for pane in expected_panes(check)
        for name in find_uncompared_fields(pane)
    }
    compared = [(check.expected, actual) for check, (_, actual) in zip(case.checks, answers, strict=True)]
    if len(compared) > 1 and compared[-1] == ([], []):
        compared.pop()
    return CaseVerdict(
        id=case.id,
        is_ok=all_met != case.must_fail,
        expected=[expected for expected, _ in compared],
        actual=[actual for _, actual in compared],
        engine_specific=case.engine_specific,
        not_compared=tuple(sorted(uncompared)),
    )


def compare_new_panes(
    case: Case, check: CaseCheck, observed_batches: Sequence[ObservedBatch], _: Sequence[ObservedBatch]
) -> CheckAnswer:
    """Compare the panes since the last check."""
    actual = [CasePane(pane, case.unit) for observed in observed_batches for pane in observed.panes]
    return can_pair_all(check.expected, actual, matches_expected), [
        case_pane.as_json() for case_pane in actual
    ]


def compare_all_panes(
    case: Case, check: CaseCheck, _: Sequence[ObservedBatch], observed_batches: Sequence[ObservedBatch]
) -> CheckAnswer:
    """Compare all panes of the run."""
    return compare_new_panes(case, check, observed_batches, observed_batches)


def compare_late_records(
    case: Case, check: CaseCheck, _: Sequence[ObservedBatch], observed_batches: Sequence[ObservedBatch]
) -> CheckAnswer:
    """Compare the records that no window accepted, over the whole run."""
    rows = [row for observed in observed_batches for row in observed.late]
    records = {record.address: record.fields for batch in case.script.batches for record in batch.records}
    dropped_rows = [row for row in first_row_per_record(rows) if is_dropped_everywhere(case, row, rows)]
    actual = [
        {
            "key": row.key[0],
            "value": records[row.address]["value"],
            "timestamp": to_case_unit(row.time, case.unit),
        }
        for row in dropped_rows
    ]
    return can_pair_all(check.expected, actual, lambda want, have: want.items() <= have.items()), actual


def first_row_per_record(rows: Sequence[LateRow]) -> list[LateRow]:
    """Return one row for each record."""
    return list({row.address: row for row in rows}.values())


def is_dropped_everywhere(case: Case, row: LateRow, rows: Sequence[LateRow]) -> bool:
    """Tell whether no window of a record accepted it."""
    window = case.script.plan.only_stage.window
    window_count = len(find_containing_windows(window, row.time)) if window.may_overlap else 1
    return sum(other.address == row.address for other in rows) >= max(window_count, 1)


def compare_state_sum(
    case: Case, check: CaseCheck, _: Sequence[ObservedBatch], observed_batches: Sequence[ObservedBatch]
) -> CheckAnswer:
    """Compare the content of an open window."""
    actual = [describe_open_window(window, case) for window in open_windows_after(observed_batches) or ()]
    expected_state: Mapping[str, Any] = check.expected
    matching_windows = [
        window
        for window in open_windows_after(observed_batches) or ()
        if has_bounds(expected_state["window"], window, case)
    ]
    return any(dict(window.values).get("sum") == expected_state["sum"] for window in matching_windows), actual


def compare_window_count(
    _case: Case, check: CaseCheck, _: Sequence[ObservedBatch], observed_batches: Sequence[ObservedBatch]
) -> CheckAnswer:
    """Compare the number of open windows."""
    windows = open_windows_after(observed_batches)
    actual = None if windows is None else len(windows)
    return actual == check.expected, actual


def open_windows_after(observed_batches: Sequence[ObservedBatch]) -> tuple[OpenWindow, ...] | None:
    """Return the windows that are open after the last batch, if the engine exposes them."""
    return observed_batches[-1].windows if observed_batches else ()


def has_bounds(expected: Any, window: OpenWindow, case: Case) -> bool:
    """Compare the bounds of an open window."""
    return [to_case_unit(window.start, case.unit), to_case_unit(window.end, case.unit)] == list(expected)


def describe_open_window(window: OpenWindow, case: Case) -> dict[str, Any]:
    """Return an open window in the terms of a case."""
    bounds = [to_case_unit(window.start, case.unit), to_case_unit(window.end, case.unit)]
    return {"window": bounds, **dict(window.values)}


CHECK_FUNCTIONS: dict[
    str, Callable[[Case, CaseCheck, Sequence[ObservedBatch], Sequence[ObservedBatch]], CheckAnswer]
] = {
    "expect": compare_new_panes,
    "expect_all": compare_all_panes,
    "expect_late": compare_late_records,
    "state_sum": compare_state_sum,
    "state_windows": compare_window_count,
}
