"""The explanation of plans as text, JSON and diagrams."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.pipelines.plan_strategies import plans
from tests.pipelines.stream.named_functions import Alarm, alarm

from penstock.engine.explain import PhysicalOperator, explain, render_mermaid
from penstock.engine.plan.codec import fingerprint, plan_from_dict
from penstock.engine.plan.stages import Plan
from penstock.engine.windows.window import Window
from penstock.stream import (
    after_count,
    after_watermark,
    as_of,
    count,
    distinct,
    every,
    fixed,
    global_window,
    join,
    max_,
    mean,
    quantiles,
    read,
    read_panes,
    records,
    repeatedly,
    sliding_by,
    tumbling,
)

RETURNS = {"above": "DOUBLE"}
CORRECTIONS = (
    read("sensors", idle_after="30 seconds")
    .deduplicate(within="2 hours")
    .sql("SELECT * FROM input WHERE temperature IS NOT NULL")
    .key("device")
    .aggregate(temperature=mean("temperature"), readings=count())
    .window(fixed("1 minute"))
    .trigger(after_watermark(early=every("10 seconds")), lateness="1 hour")
    .accumulation("retracting")
    .write("sensor_corrections")
).plan


def test_the_questions_the_plan_and_the_state_are_explained_in_order() -> None:
    expected = (Path(__file__).parent / "sensor_corrections.txt").read_text(encoding="utf-8")
    explanation = (
        explain(CORRECTIONS).as_text().replace(f"  (fingerprint {fingerprint(CORRECTIONS)[:12]})", "")
    )
    assert explanation == expected


def test_the_physical_plan_is_shown_when_it_is_given() -> None:
    physical_plan = (PhysicalOperator("process", "driver", 1, "merges partials with the state"),)
    explanation = explain(CORRECTIONS, physical_plan)
    assert "process: merges partials with the state (driver, 1 task)" in explanation.as_text()
    assert explanation.as_json()["physical"] == [
        {"part": "process", "tier": "driver", "tasks": 1, "operation": "merges partials with the state"}
    ]


def test_the_terms_of_other_systems_are_named() -> None:
    physical_plan = (
        PhysicalOperator("read sensors", "executors", 3, "parses"),
        PhysicalOperator("process", "driver", 1, "processes"),
    )
    explanation = explain(CORRECTIONS, physical_plan).as_json()["elements"]
    assert explanation["stateless"] == (
        "parsing of sensors, sql SELECT * FROM input WHERE temperature IS NOT NULL and assignment to windows"
    )
    assert explanation["stateful"] == "deduplication of sensors and sensor_corrections (windows by device)"
    assert explanation["data parallel"] == "read sensors in 3 tasks"
    assert "stateful: deduplication of sensors" in explain(CORRECTIONS, physical_plan).as_text()


@settings(deadline=None)
@given(plans())
def test_every_plan_can_be_explained_as_text_and_as_json(plan: Plan) -> None:
    explanation = explain(plan)
    assert explanation.as_text().startswith(plan.name)
    document = json.loads(json.dumps(explanation.as_json()))
    assert list(document["stages"][plan.only_stage.name]) == ["what", "where", "when", "how"]
    assert plan_from_dict(document["plan"]) == plan


def test_a_graph_of_stages_is_drawn_with_its_edges() -> None:
    minute = (
        read("sensors").key("device").aggregate(readings=count()).window(fixed("1 minute"))
        .accumulation("retracting").write("minute")
    )  # fmt: skip
    hour = minute.then().named("hours").aggregate(devices=count()).window(fixed("1 hour")).write("hour")
    assert render_mermaid(hour.to_plan("both")) == (
        """flowchart LR
    n0[("topic sensors")]
    subgraph batch [one batch]
        n1["minute<br>by device, in fixed windows of 1 minute<br>readings (retracting)"]
        n2["hours<br>all together, in fixed windows of 1 hour<br>devices (retracting)"]
    end
    n0 -->|records| n1
    n1 --> n1t0[["minute: latest value per key and window"]]
    n1 -->|changes| n2
    n2 --> n2t0[["hour: latest value per key and window"]]
"""
    )


def test_special_characters_of_a_diagram_are_escaped() -> None:
    hot = (
        read("sensors")
        .sql("SELECT * FROM input WHERE temperature<humidity AND site = '#1'")
        .filter("humidity > 3")
    )
    drawn = render_mermaid(hot.key("device").aggregate(n=count()).window(fixed("1 minute")).write("t").plan)
    assert "temperature#lt;humidity AND site = '#35;1'" in drawn
    assert "`humidity` #gt; 3" in drawn


def test_a_join_is_explained_with_its_kind_and_state() -> None:
    joined = join(read("impressions"), read("ad-clicks"), by="id", how="left", take={"at": "impressions.at"})
    explanation = explain(joined.window(fixed("10 minutes")).write("seen", mode="log").plan).as_text()
    assert "Per id, the left join of impressions and ad-clicks:" in explanation
    assert "left (every record, with the fields that the join returns)" in explanation


def test_emission_and_lateness_of_an_unwindowed_join_are_explained() -> None:
    newest = join(
        read("cards"), read("card-limits"), by="card", how="left", take={"most": "card-limits.most"}
    )
    explanation = explain(
        newest.window(as_of()).trigger(lateness="1 minute").write("limits", mode="log").plan
    ).as_text()
    assert "A record is emitted when the watermark has passed it by 1 minute." in explanation
    assert "Records more than 1 minute behind the watermark go to the late table." in explanation
    assert "kept until the watermark has passed them by 1 minute; a version until" in explanation
    assert "correct a window" not in explanation


def test_the_end_of_a_window_is_explained() -> None:
    counted = read("sensors").key("device").aggregate(n=count())
    at_end = explain(counted.window(fixed("1 minute")).write("t").plan).as_text()
    assert "When the watermark passes the end of the window.\n" in at_end
    by_clock = explain(counted.window(fixed("1 minute", time="processing")).write("t").plan).as_text()
    assert "When the batch clock passes the end of the window.\n" in by_clock
    early = after_watermark(early=every("10 seconds"), late=after_count(5))
    first = explain(counted.window(fixed("1 minute")).trigger(early).write("t").plan).as_text()
    assert (
        "if new records have arrived; on-time pane when the watermark passes the end of the window.\n"
        in first
    )
    global_windows = (
        counted.window(global_window()).accumulation("retracting").trigger(repeatedly(after_count(1)))
    )
    both = explain(global_windows.write("t").then().aggregate(devices=count()).write("all").plan).as_text()
    assert "No record is late: the window has no end." in both
    assert both.count("kept until the input ends") == 2


def test_the_record_order_of_functions_is_explained() -> None:
    def explain_order(order: str) -> str:
        stage = read("sensors").key("device").stateful(alarm, state=Alarm, returns=RETURNS, order=order)
        plan = stage.write("t", mode="log").plan
        return explain(plan).as_text() + render_mermaid(plan)

    assert "group by device, in arrival order" in explain_order("arrival")
    assert "group by device, in event-time order" in explain_order("event_time")
    assert "by device, in event-time order: stateful " in explain_order("event_time")
    assert "arrival order" not in explain_order("event_time")


def test_single_rows_are_explained() -> None:
    explanation = explain(read("sensors").rows({"site": "STRING"}).write("t", mode="log").plan).as_text()
    assert "No windows: each record is a row of its own." in explanation


def test_the_physical_plan_is_drawn_beside_a_graph() -> None:
    physical_plan = (
        PhysicalOperator("read sensors", "executors", 3, "parses"),
        PhysicalOperator("process", "driver", 1, "processes"),
    )
    assert render_mermaid(CORRECTIONS, physical_plan).endswith(
        """    subgraph executors [in the executors]
        r0["read sensors<br>3 tasks"]
    end
    subgraph driver [in the driver]
        r1["process<br>1 task"]
    end
"""
    )


def test_publisher_and_reader_of_panes_are_explained() -> None:
    minute = read("sensors").key("device").aggregate(readings=count()).window(fixed("1 minute"))
    writer = minute.accumulation("retracting").publish("minutes").to_plan("minute")
    assert "publish every pane as a change to topic minutes" in explain(writer).as_text()
    assert 'n1 --> n1p0[("topic minutes: every pane as a change")]' in render_mermaid(writer)
    columns = {"device": "STRING", "readings": "BIGINT"}
    panes = read_panes("minutes", columns=columns, lateness="1 hour")
    reader = panes.aggregate(devices=count()).window(fixed("1 hour")).write("hour").plan
    explanation = explain(reader).as_text()
    assert "The panes that another stream publishes, unchanged:" in explanation
    assert "device (STRING), readings (BIGINT)" in explanation
    assert "they correct a window for 1 hour after its end, by their watermark." in explanation
    assert "panes read as changes" in render_mermaid(reader)


@settings(deadline=None)
@given(plans())
def test_every_plan_is_drawn(plan: Plan) -> None:
    assert render_mermaid(plan).startswith("flowchart LR\n")


@pytest.mark.parametrize("window", [tumbling(records(5)), sliding_by(evict=records(5), trigger=records(1))])
def test_the_state_of_a_key_in_record_order_is_explained(window: Window) -> None:
    explanation = explain(
        read("sensors").key("device").aggregate(n=count()).window(window).write("t").plan
    ).as_text()
    assert "the window counter of each key is kept until the stream is dropped" in explanation


def test_aggregates_of_panes_are_not_called_approximate() -> None:
    minute = read("sensors").key("device").aggregate(hot=max_("temperature")).window(fixed("1 minute"))
    hot = {"hot": quantiles("hot", 0.5), "sorts": distinct("hot", exact=False)}
    explanation = explain(minute.write("minute").then().aggregate(**hot).write("hour").plan).as_text()
    assert "hot: quantile 0.5 of hot\n" in explanation
    assert "sorts: number of distinct hot\n" in explanation


def test_each_output_table_of_a_function_is_explained() -> None:
    columns = {"since": "BIGINT"}
    alarms = (
        read("sensors").key("device").stateful(alarm, state=Alarm, returns=columns, outputs={"cold": columns})
    )
    plan = alarms.write("hot", mode="log").write("cool", mode="log", output="cold").plan
    assert "append every pane to hot" in explain(plan).as_text()
    assert "append rows of output cold to cool" in explain(plan).as_text()
    assert '[["cool: rows of output cold"]]' in render_mermaid(plan)
