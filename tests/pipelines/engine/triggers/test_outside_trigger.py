"""A trigger outside of the source tree works everywhere a trigger of the engine does, without an edit."""

import json
from collections.abc import Iterator
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.installed_kinds import installed_kinds
from tests.pipelines.outside_kinds import TRIGGER, TRIGGER_REFERENCE

from penstock import stream
from penstock.conformance import ReferenceEngine, run_cases
from penstock.conformance.time_units import TimeUnit
from penstock.conformance.trigger_parser import parse_argument
from penstock.engine.definition.durations import Duration
from penstock.engine.errors import DefinitionError, PlanFormatError, TranscriptError
from penstock.engine.explain import explain
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.triggers.trigger import Trigger
from penstock.stream.keyword_registries import TRIGGER_KEYWORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT: dict[str, Any] = {
    "read": "sensors",
    "key": "device",
    "aggregate": {"n": "count()"},
    "window": {"fixed": "1 minute"},
    "write": {"table": "quiet_devices", "mode": "latest"},
}


@pytest.fixture(autouse=True)
def _outside_trigger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = {"outside_trigger": TRIGGER, "outside_trigger_reference": TRIGGER_REFERENCE}
    with installed_kinds(
        tmp_path, monkeypatch, TRIGGER_KEYWORDS, modules, after_inactivity="outside_trigger:after_inactivity"
    ):
        yield


def parse(trigger: object) -> stream.Pipeline:
    return stream.from_document(DOCUMENT | {"trigger": trigger})


def test_python_and_yaml_give_one_plan_by_entry_point_and_by_module() -> None:
    pipeline = (
        stream.read("sensors")
        .key("device")
        .aggregate(n=stream.count())
        .window(stream.fixed("1 minute"))
        .trigger(stream.repeatedly(stream.after_inactivity("10 seconds")))
        .write("quiet_devices", mode="latest")
    )
    assert stream.triggers.after_inactivity is stream.after_inactivity
    for name in ("after_inactivity", "outside_trigger:after_inactivity"):
        assert parse({"repeatedly": {name: "10 seconds"}}).plan == pipeline.plan
    assert parse({"repeatedly": {"outside_trigger:AfterInactivity": 10_000}}).plan == pipeline.plan


def test_a_plan_stores_it_as_module_and_class() -> None:
    plan = parse({"repeatedly": {"after_inactivity": "10 seconds"}}).plan
    stored = json.loads(json.dumps(plan_to_dict(plan)))
    trigger = stored["plan"]["stages"][0]["trigger"]["trigger"]
    assert trigger == {"kind": "outside_trigger:AfterInactivity", "gap": 10_000}
    assert plan_from_dict(stored) == plan
    assert fingerprint(plan_from_dict(stored)) == fingerprint(plan)
    trigger["kind"] = "removed_package:AfterInactivity"
    with pytest.raises(PlanFormatError, match=r"removed_package:AfterInactivity.*Install its module"):
        plan_from_dict(stored)


def test_explain_describes_it() -> None:
    plan = parse({"repeatedly": {"after_inactivity": "10 seconds"}}).plan
    assert "Repeatedly 10 seconds after the newest record, on the batch clock." in str(explain(plan))


@pytest.mark.parametrize(
    ("trigger", "problem"),
    [
        (
            {"repeatedly": {"after_inactivty": "1 s"}},
            "no trigger 'after_inactivty'. Did you mean 'after_inac",
        ),
        ({"repeatedly": {"after_inactivity": "soon"}}, "trigger.after_inactivity: 'soon'"),
        ({"repeatedly": {"after_inactivity": 0}}, "trigger.after_inactivity: 0. Give a whole number"),
        ({"repeatedly": {"after_inactivity": {"gape": "1 s"}}}, "Its arguments are: gap"),
        ("outside_trigger:dataclass", "not a trigger. Name a class of this kind, or a function marked with"),
        ("no_such_module:after_inactivity", "cannot be loaded"),
        (
            {"after_inactivity": "1 s"},
            "it fires a last time, and would lose later records. Wrap it in repeatedly",
        ),
    ],
)
def test_a_wrong_definition_names_the_field_and_the_fix(trigger: Any, problem: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        _ = parse(trigger).plan
    assert problem in str(refused.value)


def element(value: int, time: int = 1) -> dict[str, Any]:
    return {"elements": [{"key": "k", "value": value, "ts": time}]}


def case(trigger: dict[str, Any], *steps: dict[str, Any], **changes: Any) -> dict[str, Any]:
    window = {"type": "fixed", "size": 100}
    case_node = {"id": "case", "unit": "s", "window": window, "trigger": trigger, "allowed_lateness": 0}
    return {**case_node, "accumulation": "accumulating", "steps": list(steps), **changes}


INACTIVITY = {"type": "after_inactivity", "gap": 10}
CASES = [
    case(
        {"type": "repeatedly", "of": INACTIVITY},
        {"processing_time": 0},
        element(1),
        {"processing_time": 8},
        element(2),
        {"processing_time": 17},
        {"expect": []},
        {"processing_time": 18},
        {"expect": [{"values": [1, 2], "index": 0, "timing": "early"}]},
        {"processing_time": 40},
        {"expect": []},
        element(3),
        {"processing_time": 51},
        {"expect": [{"values": [1, 2, 3], "index": 1}]},
        id="each_burst_gives_one_pane",
    ),
    case(
        {
            "type": "repeatedly",
            "of": {"type": "after_all", "of": [INACTIVITY, {"type": "after_count", "n": 2}]},
        },
        {"processing_time": 0},
        element(1),
        {"processing_time": 11},
        {"expect": []},
        element(2),
        {"expect": [{"values": [1, 2], "index": 0}]},
        id="once_ready_it_stays_ready",
    ),
    case(
        {"type": "repeatedly", "of": {"type": "outside_trigger:after_inactivity", "gap_ms": 10_000}},
        {"processing_time": 0},
        element(1, 0),
        {"processing_time": 4},
        element(2, 8),
        {"processing_time": 6},
        element(3, 4),
        {"processing_time": 15},
        {"expect": []},
        {"processing_time": 16},
        {"expect": [{"window": [0, 13], "values": [1, 2, 3]}]},
        id="merged_sessions_wait_for_their_newest_element",
        window={"type": "sessions", "gap": 5},
    ),
]


def test_recorded_cases_come_out_as_worked_out_by_hand() -> None:
    verdicts = list(run_cases(CASES, ReferenceEngine()))
    assert [(verdict.id, verdict.actual) for verdict in verdicts if not verdict.is_ok] == []


@pytest.mark.parametrize(
    ("annotation", "default", "spec", "expected"),
    [
        (Duration, Parameter.empty, {"limit": 3}, 3_000),
        (Duration, "1 minute", {}, "1 minute"),
        (Duration | None, None, {"limit_ms": 3}, 3),
        (Duration | None, None, {}, None),
        (int, Parameter.empty, {"limit": 3}, 3),
        (str, "low", {}, "low"),
        (Trigger, Parameter.empty, {"limit": "default"}, stream.default()),
        (Trigger | None, None, {}, None),
    ],
)
def test_a_case_names_the_arguments_of_any_keyword(
    annotation: Any, default: Any, spec: dict[str, Any], expected: object
) -> None:
    parameter = Parameter("limit", Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    assert parse_argument(spec, parameter, TimeUnit(1_000)) == expected


@pytest.mark.parametrize("annotation", [int, Duration, Trigger])
def test_a_case_without_a_required_argument_is_refused(annotation: Any) -> None:
    parameter = Parameter("limit", Parameter.KEYWORD_ONLY, annotation=annotation)
    with pytest.raises(TranscriptError, match=r"'mine' needs .*limit.*; found"):
        parse_argument({"type": "mine"}, parameter, TimeUnit(1_000))


@pytest.mark.spark
def test_spark_shows_the_same_panes_as_the_reference(spark: "SparkSession") -> None:
    from penstock.conformance.on_spark import SparkEngine

    verdicts = list(run_cases(CASES, SparkEngine(spark)))
    assert [(verdict.id, verdict.actual) for verdict in verdicts if not verdict.is_ok] == []
    references = run_cases(CASES, ReferenceEngine())
    assert [verdict.actual for verdict in verdicts] == [reference.actual for reference in references]
