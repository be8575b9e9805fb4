"""A policy of order windows outside of the source tree works where those of the engine do, without an edit."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.installed_kinds import installed_kinds
from tests.pipelines.outside_kinds import POLICY, POLICY_REFERENCE

from penstock import stream
from penstock.conformance import ReferenceEngine, run_cases
from penstock.engine.errors import DefinitionError
from penstock.engine.explain import explain
from penstock.engine.plan.codec import plan_from_dict, plan_to_dict
from penstock.stream.keyword_registries import POLICY_KEYWORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT: dict[str, Any] = {
    "read": "sensors",
    "key": "device",
    "aggregate": {"n": "count()"},
    "write": {"table": "levels", "mode": "log"},
}


@pytest.fixture(autouse=True)
def _outside_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = {"outside_policy": POLICY, "outside_policy_reference": POLICY_REFERENCE}
    with installed_kinds(tmp_path, monkeypatch, POLICY_KEYWORDS, modules, changes="outside_policy:changes"):
        yield


def parse(policy: object) -> stream.Pipeline:
    return stream.from_document(DOCUMENT | {"window": {"tumbling": policy}})


def test_it_is_defined_in_python_and_yaml_stored_and_described() -> None:
    pipeline = (
        stream.read("sensors")
        .key("device")
        .aggregate(n=stream.count())
        .window(stream.tumbling(stream.changes("humidity")))
        .write("levels", mode="log")
    )
    for name in ("changes", "outside_policy:changes"):
        assert parse({name: "humidity"}).plan == pipeline.plan
    stored = json.loads(json.dumps(plan_to_dict(pipeline.plan)))
    policy = stored["plan"]["stages"][0]["window"]["close"]
    assert policy == {"kind": "outside_policy:ChangePolicy", "field": "humidity"}
    assert plan_from_dict(stored) == pipeline.plan
    description = "closed before a record whose humidity differs from the window's first"
    assert description in explain(pipeline.plan).as_text()


def test_a_window_refuses_a_policy_that_has_no_meaning_for_it() -> None:
    window = {"sliding_by": [{"changes": "humidity"}, {"records": 1}]}
    with pytest.raises(DefinitionError, match=r"window.sliding_by.evict: ChangePolicy.*records\(5\)"):
        _ = stream.from_document(DOCUMENT | {"window": window}).plan


CASE: dict[str, Any] = {
    "id": "a_window_holds_equal_values",
    "unit": "s",
    "window": {"type": "tumbling", "close": {"type": "changes", "field": "value"}},
    "accumulation": "accumulating",
    "steps": [
        {"elements": [{"key": "k", "value": value, "ts": number} for number, value in enumerate([5, 5, 7])]},
        {"expect": [{"values": [5, 5]}]},
        {"elements": [{"key": "k", "value": value, "ts": 3 + number} for number, value in enumerate([7, 5])]},
        {"expect": [{"values": [7, 7]}]},
    ],
}


def test_a_recorded_case_comes_out_as_worked_out_by_hand() -> None:
    (verdict,) = run_cases([CASE], ReferenceEngine())
    assert verdict.is_ok, verdict.actual


@pytest.mark.spark
def test_spark_shows_the_same_panes_as_the_reference(spark: "SparkSession") -> None:
    from penstock.conformance.on_spark import SparkEngine

    (verdict,) = run_cases([CASE], SparkEngine(spark))
    (reference,) = run_cases([CASE], ReferenceEngine())
    assert verdict.is_ok, verdict.actual
    assert verdict.actual == reference.actual
