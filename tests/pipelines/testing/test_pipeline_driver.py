"""The testing kit: what a test gives and gets."""

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.engine.errors import DefinitionError, PipelineTestError
from penstock.stream import Pipeline, after_watermark, count, every, fixed, mean, read, sessions, sum_
from penstock.testing import PipelineDriver, utc

NOON = utc("2026-01-01T12:00:00Z")
READING = {"id": "1", "device": "oven-1", "site": "north", "at": NOON + 5_000, "temperature": 20.0}


def hot_ovens() -> Pipeline:
    return (
        read("sensors")
        .lookup("limits", on="device", columns={"limit": "DOUBLE"})
        .map(add_excess, returns={"device": "STRING", "excess": "DOUBLE"})
        .filter("excess > 0")
        .key("device")
        .aggregate(excess=sum_("excess"), readings=count())
        .window(fixed("1 minute"))
        .accumulation("accumulating")
        .write("hot_ovens", mode="latest")
    )


def add_excess(row: dict[str, Any]) -> dict[str, Any]:
    limit = row["limit"]
    return {"device": row["device"], "excess": None if limit is None else row["temperature"] - limit}


def test_a_batch_returns_its_panes_as_the_table_has_them() -> None:
    driver = PipelineDriver("sensor_minute", clock=NOON)
    driver.send(READING, {**READING, "id": "2", "temperature": 30.0})
    driver.run_batch(NOON + 20_000)
    rows = driver.end_input()
    assert rows.panes == [
        {
            "device": "oven-1",
            "window_start": "2026-01-01T12:00:00Z",
            "window_end": "2026-01-01T12:01:00Z",
            "temperature": 25.0,
            "readings": 2,
            "pane": 0,
            "timing": "on_time",
            "on_time_index": 0,
            "final": True,
            "kind": "insert",
            "records": 2,
        }
    ]


def test_records_are_fields_text_or_bytes() -> None:
    texts = [
        '{"id":"2","device":"b","site":"s","at":1,"temperature":1.5}',
        b'{"id":"3","device":"b","site":"s","at":2}',
    ]
    driver = PipelineDriver("sensor_minute")
    driver.send({**READING, "device": "a", "at": 0}, *texts)
    driver.end_input()
    assert driver.latest(columns=("device", "readings")) == [
        {"device": "a", "readings": 1},
        {"device": "b", "readings": 2},
    ]


def test_the_clock_is_only_what_the_test_says() -> None:
    driver = PipelineDriver("sensor_minute", clock="2026-01-01T12:00:00Z")
    driver.send(READING)
    assert driver.run_batch().panes == []
    assert driver.run_batch("2026-01-01T12:00:09.999Z").panes == []
    assert [row["timing"] for row in driver.run_batch(datetime(2026, 1, 1, 12, 0, 10, tzinfo=UTC)).panes] == [
        "early"
    ]


def test_invalid_records_are_quarantined_with_their_address() -> None:
    driver = PipelineDriver("sensor_minute")
    driver.send(READING, "not json", {**READING, "device": 5})
    driver.run_batch()
    assert driver.quarantined(columns=("topic", "partition", "offset")) == [
        {"topic": "sensors", "partition": 0, "offset": 1},
        {"topic": "sensors", "partition": 0, "offset": 2},
    ]


def test_late_records_are_listed_with_the_window_they_missed() -> None:
    driver = PipelineDriver("sensor_minute")
    driver.send({**READING, "at": NOON + 2 * 3_600_000})
    driver.run_batch()
    driver.send(READING)
    driver.run_batch()
    assert driver.late(columns=("offset", "window_start", "window_end", "missed_by_ms", "reason")) == [
        {
            "offset": 1,
            "window_start": "2026-01-01T12:00:00Z",
            "window_end": "2026-01-01T12:01:00Z",
            "missed_by_ms": 3_530_000,
            "reason": "closed",
        }
    ]


def test_a_partition_without_records_holds_the_watermark_back() -> None:
    driver = PipelineDriver(
        read("sensors").key("device").aggregate(n=count()).window(fixed("1 minute")).write("n"), partitions=2
    )
    driver.send(READING, {**READING, "at": NOON + 600_000})
    assert driver.run_batch().panes == []
    driver.send({**READING, "device": "oven-2", "at": NOON + 600_000}, partition=1)
    assert [row["n"] for row in driver.run_batch().panes] == [1]


def test_lookups_use_the_rows_of_the_test() -> None:
    driver = PipelineDriver(hot_ovens(), lookups={"limits": [{"device": "oven-1", "limit": 15.5}]})
    driver.send(READING, {**READING, "temperature": 16.0}, {**READING, "device": "oven-2"})
    driver.end_input()
    assert driver.latest(columns=("device", "excess", "readings")) == [
        {"device": "oven-1", "excess": 5.0, "readings": 2}
    ]


def test_a_merged_session_replaces_its_parts_among_the_latest_values() -> None:
    readings = read("sensors", max_out_of_orderness="5 minutes")
    pipeline = readings.key("device").aggregate(n=count()).window(sessions("1 minute"))
    pipeline = pipeline.trigger(after_watermark(early=every("1 second"))).accumulation("accumulating")
    driver = PipelineDriver(pipeline.write("visits"), clock=NOON)
    driver.send(READING, {**READING, "at": NOON + 100_000})
    driver.run_batch()
    driver.run_batch(NOON + 1_000)
    assert driver.latest(columns=("window_start", "n")) == [
        {"window_start": "2026-01-01T12:00:05Z", "n": 1},
        {"window_start": "2026-01-01T12:01:40Z", "n": 1},
    ]
    driver.send({**READING, "at": NOON + 60_000})
    driver.run_batch(NOON + 2_000)
    driver.run_batch(NOON + 3_000)
    assert driver.latest(columns=("window_start", "n")) == [{"window_start": "2026-01-01T12:00:05Z", "n": 3}]


def test_an_error_in_user_code_reaches_the_test() -> None:
    def divide(row: dict[str, Any]) -> dict[str, Any]:
        return {"device": row["device"], "share": 1 / (row["temperature"] - 20)}

    pipeline = (
        read("sensors")
        .map(divide, returns={"device": "STRING", "share": "DOUBLE"}, version="1")
        .key("device")
        .aggregate(share=mean("share"))
        .window(fixed("1 minute"))
        .trigger(after_watermark(early=every("10 seconds")))
        .accumulation("accumulating")
        .write("shares")
    )
    driver = PipelineDriver(pipeline)
    driver.send(READING)
    with pytest.raises(ZeroDivisionError):
        driver.run_batch()


def test_a_pipeline_with_sql_says_how_to_pass_spark() -> None:
    driver = PipelineDriver("word_count")
    driver.send({"line": "a b", "sent_at": NOON})
    with pytest.raises(PipelineTestError, match="Take the pytest fixture penstock_spark"):
        driver.run_batch()


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (
            lambda driver: driver.send(READING, topic="sensor"),
            "there is no topic 'sensor'. Did you mean 'sensors'?",
        ),
        (
            lambda driver: driver.send(READING, partition=1),
            "partition 1 does not exist. Set partitions=2, or use 0 to 0",
        ),
        (lambda driver: driver.send({"at": object()}), "is not JSON: a value is of type object"),
        (lambda driver: driver.send(5), "5 is not a record. Write its fields as a dict, or its JSON as text"),
        (
            lambda driver: driver.latest("sensor_minut"),
            "there is no output 'sensor_minut'. Did you mean 'sensor_minute'?",
        ),
        (lambda driver: driver.run_batch("2026-01-01T00:00:00"), "has no time zone. Append 'Z' for UTC"),
        (lambda driver: driver.run_batch("noon"), "'noon' is not a time. Write it as '2026-01-01T12:00:00Z'"),
        (lambda driver: driver.run_batch(0), "the clock cannot go back, from 2026-01-01T12:00:00Z to 0"),
    ],
)
def test_a_mistake_in_a_test_gets_a_sentence(action: Any, message: str) -> None:
    driver = PipelineDriver("sensor_minute", clock=NOON)
    with pytest.raises(PipelineTestError) as caught:
        action(driver)
    assert message in str(caught.value)


def test_no_batch_runs_after_the_end_of_the_input() -> None:
    driver = PipelineDriver("sensor_minute")
    driver.end_input()
    with pytest.raises(PipelineTestError, match="the input has ended"):
        driver.run_batch()


def test_an_unknown_pipeline_is_named() -> None:
    with pytest.raises(DefinitionError, match="there is no pipeline 'sensor_minut'"):
        PipelineDriver("sensor_minut")
