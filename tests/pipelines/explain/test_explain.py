"""A plan is explained in words, whatever it is."""

import json
from pathlib import Path

from hypothesis import given, settings
from tests.pipelines.strategies import plans

from penstock.pipelines.explain import Running, explain
from penstock.pipelines.model import after_watermark, count, every, fixed, mean, read
from penstock.pipelines.plan import Plan, fingerprint, from_dict

CORRECTIONS = (
    read("sensors", idle_after="30 seconds")
    .deduplicate(within="2 hours")
    .sql("SELECT * FROM input WHERE temperature IS NOT NULL")
    .key("device")
    .aggregate(temperature=mean("temperature"), readings=count())
    .window(fixed("1 minute"))
    .trigger(after_watermark(early=every("10 seconds")), lateness="1 hour")
    .refine("retracting")
    .write("sensor_corrections")
).plan


def test_the_four_questions_the_plan_and_the_state_are_told_in_order() -> None:
    expected = (Path(__file__).parent / "sensor_corrections.txt").read_text(encoding="utf-8")
    told = explain(CORRECTIONS).text().replace(f"  (fingerprint {fingerprint(CORRECTIONS)[:12]})", "")
    assert told == expected


def test_what_runs_the_plan_is_told_where_an_engine_says_so() -> None:
    running = (Running("fold", "driver", 1, "folds partials with the state"),)
    told = explain(CORRECTIONS, running)
    assert "fold: folds partials with the state (driver, 1 task)" in told.text()
    assert told.as_json()["physical"] == [
        {"part": "fold", "tier": "driver", "tasks": 1, "does": "folds partials with the state"}
    ]


@settings(deadline=None)
@given(plans())
def test_every_plan_can_be_explained_as_text_and_as_json(plan: Plan) -> None:
    told = explain(plan)
    assert told.text().startswith(plan.name)
    document = json.loads(json.dumps(told.as_json()))
    assert list(document["stages"][plan.stage.name]) == ["what", "where", "when", "how"]
    assert from_dict(document["plan"]) == plan
