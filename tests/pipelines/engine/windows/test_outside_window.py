"""A window outside of the source tree works everywhere a window of the engine does, without an edit."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.installed_kinds import installed_kinds
from tests.pipelines.outside_kinds import WINDOW, WINDOW_REFERENCE

from penstock import stream
from penstock.conformance import ReferenceEngine, run_cases
from penstock.conformance.reference.window_assignment import find_containing_windows
from penstock.conformance.verdict import CaseVerdict
from penstock.engine.errors import DefinitionError, PlanFormatError
from penstock.engine.explain import explain
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.windows.time_window import TimeWindow
from penstock.engine.windows.window import Window
from penstock.stream.keyword_registries import WINDOW_KEYWORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STARTS = ["6 hours", "14 hours", "22 hours"]
HOUR_MS = 3_600_000
DOCUMENT: dict[str, Any] = {
    "read": "sensors",
    "key": "device",
    "aggregate": {"n": "count()"},
    "write": {"table": "shifts", "mode": "latest"},
}


@pytest.fixture(autouse=True)
def _outside_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = {"outside_window": WINDOW, "outside_window_reference": WINDOW_REFERENCE}
    with installed_kinds(tmp_path, monkeypatch, WINDOW_KEYWORDS, modules, shifts="outside_window:shifts"):
        yield


def parse(window: object) -> stream.Pipeline:
    return stream.from_document(DOCUMENT | {"window": window})


def shifts(length: str = "8 hours 15 minutes") -> stream.Pipeline:
    return parse({"shifts": {"starts": STARTS, "length": length}})


def window_of(pipeline: stream.Pipeline) -> Window:
    return pipeline.plan.only_stage.window


def test_python_and_yaml_give_one_plan_by_entry_point_and_by_module() -> None:
    pipeline = (
        stream.read("sensors")
        .key("device")
        .aggregate(n=stream.count())
        .window(stream.shifts(STARTS, "8 hours 15 minutes"))
        .write("shifts", mode="latest")
    )
    assert stream.windows.shifts is stream.shifts
    for name in ("shifts", "outside_window:shifts"):
        assert parse({name: {"starts": STARTS, "length": "8h15m"}}).plan == pipeline.plan


def test_a_plan_stores_it_as_module_and_class() -> None:
    plan = shifts().plan
    stored = json.loads(json.dumps(plan_to_dict(plan)))
    window = stored["plan"]["stages"][0]["window"]
    starts = [hour * HOUR_MS for hour in (6, 14, 22)]
    assert window == {"kind": "outside_window:Shifts", "starts": starts, "length": 29_700_000}
    assert plan_from_dict(stored) == plan
    assert fingerprint(plan_from_dict(stored)) == fingerprint(plan)
    window["kind"] = "removed_package:Shifts"
    with pytest.raises(PlanFormatError, match=r"removed_package:Shifts.*Install its module"):
        plan_from_dict(stored)


def test_explain_describes_it() -> None:
    explanation = explain(shifts().plan).as_text()
    assert (
        "Shifts of 8 hours 15 minutes that start 6 hours, 14 hours and 22 hours after midnight."
        in explanation
    )
    assert "the watermark passes the end of the window" in explanation


def test_other_questions_have_safe_answers() -> None:
    window = window_of(shifts())
    assert window.may_overlap
    assert window.has_fixed_bounds
    assert not window.is_batch_dependent
    assert window.file_span_ms == HOUR_MS
    assert (window.is_event_time_bound, window.never_ends, window.merge_gap) == (True, False, None)


@pytest.mark.parametrize("length", ["1 hour", "8 hours", "8 hours 15 minutes", "24 hours"])
def test_panes_are_assigned_as_by_the_reference(length: str) -> None:
    window = window_of(shifts(length))
    assert isinstance(window, TimeWindow)
    times = np.arange(-30 * HOUR_MS, 80 * HOUR_MS, HOUR_MS // 8)
    found = window.assign(times)
    expected = [find_containing_windows(window, time) for time in times.tolist()]
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == [
        bounds for windows in expected for bounds in windows
    ]
    assert window.count_windows(times).tolist() == [len(windows) for windows in expected]


@pytest.mark.parametrize(
    ("window", "problem"),
    [
        ({"shfits": {"starts": STARTS, "length": "8 hours"}}, "no window 'shfits'. Did you mean 'shifts'"),
        ({"shifts": {"starts": STARTS, "length": "soon"}}, "window.shifts.length: 'soon'"),
        ({"shifts": {"starts": [], "length": "1 hour"}}, "window.shifts.starts: (). Give increasing times"),
        ({"shifts": {"begins": STARTS}}, "Its arguments are: starts, length"),
        ("outside_window:dataclass", "not a window. Name a class of this kind, or a function marked with"),
        ("no_such_module:shifts", "cannot be loaded"),
    ],
)
def test_a_wrong_definition_names_the_field_and_the_fix(window: Any, problem: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        _ = parse(window).plan
    assert problem in str(refused.value)


def element(value: int, hour: float) -> dict[str, Any]:
    return {"elements": [{"key": "k", "value": value, "ts": int(hour * 3600)}]}


def case(*steps: dict[str, Any], **changes: Any) -> dict[str, Any]:
    window = {"type": "shifts", "starts": STARTS, "length_ms": 29_700_000}
    case_node = {"id": "case", "unit": "s", "window": window, "allowed_lateness": 0}
    return {**case_node, "accumulation": "accumulating", "steps": list(steps), **changes}


def shift(start: float, *values: int, end: float | None = None) -> dict[str, Any]:
    last = start + 8.25 if end is None else end
    return {"window": [int(start * 3600), int(last * 3600)], "values": list(values)}


CASES = [
    case(
        element(1, 5),
        element(2, 6.1),
        element(3, 14.2),
        {"watermark": 48 * 3600},
        {"expect": [shift(-2, 1, 2), shift(6, 2, 3), shift(14, 3)]},
        id="a_record_of_a_handover_is_in_both_shifts",
    ),
    case(
        element(1, 6.5),
        element(2, 10),
        {"watermark": 48 * 3600},
        {"expect": [shift(6, 1, end=7)]},
        {"expect_late": [{"key": "k", "value": 2}]},
        id="a_record_between_shifts_is_in_none",
        window={"type": "outside_window:shifts", "starts": STARTS, "length_ms": HOUR_MS},
    ),
]


def test_recorded_cases_come_out_as_worked_out_by_hand() -> None:
    verdicts = list(run_cases(CASES, ReferenceEngine()))
    assert [(verdict.id, verdict.actual) for verdict in verdicts if not verdict.is_ok] == []


@pytest.mark.spark
def test_spark_shows_the_same_panes_as_the_reference(spark: "SparkSession") -> None:
    from penstock.conformance.on_spark import SparkEngine

    verdicts = list(run_cases(CASES, SparkEngine(spark)))
    assert [(verdict.id, verdict.actual) for verdict in verdicts if not verdict.is_ok] == []
    references = list(run_cases(CASES, ReferenceEngine()))
    assert list(map(sort_panes, verdicts)) == list(map(sort_panes, references))


def sort_panes(verdict: CaseVerdict) -> list[list[str]]:
    """Return the panes of each check. Panes of one batch have no order."""
    return [sorted(map(repr, panes)) for panes in verdict.actual]
