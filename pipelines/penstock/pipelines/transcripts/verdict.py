"""What became of a case: each check answered, and the two sides side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.pipelines.plan.windows import Calendar, Fixed, Global, Sliding
from penstock.pipelines.reference import LateRow
from penstock.pipelines.reference.assignment import windows_of
from penstock.pipelines.transcripts.case import Case, Check, panes_in
from penstock.pipelines.transcripts.compare import Shown, agrees, in_unit, not_compared
from penstock.pipelines.transcripts.engine import Observed, OpenWindow
from penstock.pipelines.transcripts.matching import paired

Answer = tuple[bool, Any]


@dataclass(frozen=True)
class Verdict:
    """The line that is printed for a case. `malformed` says what is wrong with a case that is not of the schema."""

    id: str
    ok: bool
    expected: Any
    got: Any
    engine_specific: bool = False
    not_compared: tuple[str, ...] = ()
    malformed: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the line; what is false or empty beside the four fields is left out."""
        line = {"id": self.id, "ok": self.ok, "expected": self.expected, "got": self.got}
        if self.engine_specific:
            line["engine_specific"] = True
        if self.not_compared:
            line["not_compared"] = list(self.not_compared)
        return line


def judged(case: Case, run: Sequence[Observed]) -> Verdict:
    """Answer every check of a case."""
    answers: list[Answer] = []
    seen = 0
    for check in case.checks:
        answers.append(ANSWERS[check.kind](case, check, run[seen : check.after], run[: check.after]))
        seen = check.after if check.kind == "expect" else seen
    right = all(good for good, _ in answers)
    unknown = {name for check in case.checks for pane in panes_in(check) for name in not_compared(pane)}
    told = [(check.expected, shown) for check, (_, shown) in zip(case.checks, answers, strict=True)]
    if len(told) > 1 and told[-1] == ([], []):
        told.pop()
    return Verdict(
        id=case.id,
        ok=right != case.must_fail,
        expected=[expected for expected, _ in told],
        got=[shown for _, shown in told],
        engine_specific=case.engine_specific,
        not_compared=tuple(sorted(unknown)),
    )


def panes(case: Case, check: Check, run: Sequence[Observed], _: Sequence[Observed]) -> Answer:
    """Compare every pane since the last check."""
    found = [Shown(pane, case.unit) for observed in run for pane in observed.panes]
    return paired(check.expected, found, agrees), [shown.as_json() for shown in found]


def all_panes(case: Case, check: Check, _: Sequence[Observed], run: Sequence[Observed]) -> Answer:
    """Compare every pane of the run."""
    return panes(case, check, run, run)


def late(case: Case, check: Check, _: Sequence[Observed], run: Sequence[Observed]) -> Answer:
    """Compare the records that no window took, of the whole run."""
    rows = [row for observed in run for row in observed.late]
    records = {record.address: record.fields for b in case.script.batches for record in b.records}
    lost = [row for row in first_rows(rows) if dropped_everywhere(case, row, rows)]
    found = [
        {"key": row.key[0], "value": records[row.address]["value"], "timestamp": in_unit(row.time, case.unit)}
        for row in lost
    ]
    return paired(check.expected, found, lambda want, have: want.items() <= have.items()), found


def first_rows(rows: Sequence[LateRow]) -> list[LateRow]:
    """Return one row for each record."""
    return list({row.address: row for row in rows}.values())


def dropped_everywhere(case: Case, row: LateRow, rows: Sequence[LateRow]) -> bool:
    """Tell whether none of a record's windows took it."""
    match case.script.plan.stage.window:
        case Fixed() | Sliding() | Calendar() | Global() as window:
            places = max(len(windows_of(window, row.time)), 1)
        case _:
            places = 1
    return sum(other.address == row.address for other in rows) >= places


def state_sum(case: Case, check: Check, _: Sequence[Observed], run: Sequence[Observed]) -> Answer:
    """Compare what an open window holds."""
    found = [open_window(window, case) for window in windows_after(run) or ()]
    wanted: Mapping[str, Any] = check.expected
    inside = [window for window in windows_after(run) or () if same_bounds(wanted["window"], window, case)]
    return any(dict(window.values).get("sum") == wanted["sum"] for window in inside), found


def state_windows(_case: Case, check: Check, _: Sequence[Observed], run: Sequence[Observed]) -> Answer:
    """Compare how many windows are open."""
    windows = windows_after(run)
    found = None if windows is None else len(windows)
    return found == check.expected, found


def windows_after(run: Sequence[Observed]) -> tuple[OpenWindow, ...] | None:
    """Return the windows that are open after the last batch, if the engine shows them."""
    return run[-1].windows if run else ()


def same_bounds(expected: Any, window: OpenWindow, case: Case) -> bool:
    """Compare the bounds of an open window."""
    return [in_unit(window.start, case.unit), in_unit(window.end, case.unit)] == list(expected)


def open_window(window: OpenWindow, case: Case) -> dict[str, Any]:
    """Return an open window in the words of a case."""
    bounds = [in_unit(window.start, case.unit), in_unit(window.end, case.unit)]
    return {"window": bounds, **dict(window.values)}


ANSWERS: dict[str, Callable[[Case, Check, Sequence[Observed], Sequence[Observed]], Answer]] = {
    "expect": panes,
    "expect_all": all_panes,
    "expect_late": late,
    "state_sum": state_sum,
    "state_windows": state_windows,
}
