"""Cases that name a pipeline: verdicts, and what is said about a case that cannot run."""

from typing import Any

import pytest

from penstock.conformance import CaseVerdict
from penstock.testing.pipeline_case import run_pipeline_case

READING = {"id": "1", "device": "a", "site": "s", "at": 5_000, "temperature": 20.0}
MINUTE = {"window_start": "1970-01-01T00:00:00Z", "window_end": "1970-01-01T00:01:00Z"}


def run(*steps: Any, **fields: Any) -> CaseVerdict:
    def open_no_spark() -> Any:
        raise AssertionError("no step needs Spark")

    node = {"id": "case", "pipeline": "sensor_minute", "clock": 0, "steps": list(steps), **fields}
    return run_pipeline_case(node, "reference", open_no_spark)


def test_every_expectation_is_compared() -> None:
    verdict = run(
        {"elements": [READING, {**READING, "device": 5}]},
        {"expect": []},
        {"processing_time": 10_000},
        {"expect": [{**MINUTE, "device": "a", "timing": "early"}]},
        {"expect": []},
        {"expect_quarantined": [{"offset": 1}]},
        {"watermark": "inf"},
        {"expect": [{"timing": "on_time", "final": True}]},
        {"expect_all": [{"pane": 0}, {"pane": 1}], "output": "sensor_minute"},
        {"expect_latest": [{**MINUTE, "device": "a", "temperature": 20.0, "readings": 1}]},
        {"expect_late": []},
    )
    assert verdict.is_ok, verdict.actual


@pytest.mark.parametrize(
    "expectation",
    [
        {"expect_latest": [{"readings": 2}]},
        {"expect_latest": []},
        {"expect_latest": [{"readings": 1}, {"readings": 1}]},
        {"expect_late": [{"offset": 0}]},
        {"expect_quarantined": [{"offset": 0}]},
    ],
)
def test_a_row_too_many_or_too_few_is_a_difference(expectation: dict[str, Any]) -> None:
    verdict = run({"elements": [READING], "watermark": "inf"}, expectation)
    assert not verdict.is_ok
    assert not verdict.malformed


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"steps": [{"element": []}]},
            "step 1: the step: there is no field 'element'. Did you mean 'elements'?",
        ),
        (
            {"steps": [{"expect": [{"temprature": 1}]}]},
            "there is no field 'temprature'. Did you mean 'temperature'?",
        ),
        ({"steps": [{"watermark": 5}]}, "`watermark` is 5; write inf to end the input"),
        ({"steps": 5}, "`steps` is 5; write a list of steps"),
        ({"partitions": 0}, "`partitions` is 0; write the number of partitions"),
        ({"window": {}}, "the case: there is no field 'window'"),
        ({"pipeline": 3}, "`pipeline` is 3; write the name of a pipeline"),
    ],
)
def test_a_malformed_case_gets_a_sentence(fields: dict[str, Any], message: str) -> None:
    assert message in run(**fields).malformed


def test_an_unknown_pipeline_fails_with_its_name() -> None:
    verdict = run(pipeline="sensor_minut")
    assert not verdict.is_ok
    assert "there is no pipeline 'sensor_minut'" in verdict.actual["error"]
