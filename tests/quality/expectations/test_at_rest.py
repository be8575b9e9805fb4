"""Which batches are checked, what is kept of them, and the page that shows it."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipelines import catalog
from penstock.quality.expectations.check_batches import DAY_MS, CheckedBatch, select_due_batches
from penstock.quality.expectations.check_results import (
    BatchCheckResult,
    CheckResultStore,
    ExpectationResult,
    to_expectation_result,
)
from penstock.quality.expectations.report_page import SuiteReport, render_page, write_report_page
from penstock.quality.expectations.suite import BatchCut, Expectation, Suite, load_suite
from penstock.quality.expectations.table_checks import check_table, list_due_batches, select_unexpected_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = 1_800_000_000_000
MINUTE = 60_000


@given(st.sampled_from(["final", "day"]), st.lists(st.integers(0, 5 * DAY_MS), max_size=12))
def test_every_final_window_is_checked_once_and_no_other(cut: BatchCut, steps: list[int]) -> None:
    final, last, covered = 0, None, 0
    for step in steps:
        final += step
        for batch in select_due_batches(cut, final, 0, last):
            assert batch.after == (last if last is not None else None)
            assert batch.upto <= final
            covered, last = batch.upto, batch.upto
    if steps and cut == "final":
        assert covered == final
    if cut == "day":
        assert final - covered < DAY_MS


def test_a_version_is_checked_when_it_is_new() -> None:
    assert [batch.upto for batch in select_due_batches("version", None, 7, None)] == [7]
    assert list(select_due_batches("version", None, 7, 7)) == []
    assert [batch.upto for batch in select_due_batches("version", None, 9, 7)] == [9]


def test_nothing_is_checked_before_a_window_is_final() -> None:
    assert list(select_due_batches("final", None, 3, None)) == []


def test_labels_are_in_the_order_of_batches() -> None:
    ends = [0, 1, 999, 1_000, NOON, NOON + DAY_MS]
    assert sorted(CheckedBatch("final", end).label for end in ends) == [
        CheckedBatch("final", end).label for end in ends
    ]


MET = ExpectationResult(
    "n_between", "expect_column_values_to_be_between", "why", passed=True, checked=5, unexpected=0
)
MISSED = ExpectationResult("n_set", "expect_column_values_to_be_in_set", "why", passed=False, checked=5,
             unexpected=2, examples=({"n": 7, "device": "<b>"},), rows="/rows.jsonl")  # fmt: skip


def outcome(upto: int, *met: ExpectationResult) -> BatchCheckResult:
    return BatchCheckResult("latest/minutes", CheckedBatch("final", upto, None), NOON, met)


def test_what_is_kept_comes_back_newest_first(tmp_path: Path) -> None:
    kept = CheckResultStore(tmp_path, "latest/minutes")
    assert kept.find_newest() is None
    for upto in (NOON, NOON + DAY_MS, NOON + 1):
        kept.save(outcome(upto, MET, MISSED))
    assert [one.batch.upto for one in kept.read_all()] == [NOON + DAY_MS, NOON + 1, NOON]
    assert kept.find_newest() == outcome(NOON + DAY_MS, MET, MISSED)


def test_the_page_tells_what_is_expected_and_what_was_not_met_and_loads_nothing(tmp_path: Path) -> None:
    suite = Suite("latest/minutes", (Expectation(MET.type, {"column": "n"}, MET.name, None, "a & b"),
                                     Expectation(MISSED.type, {"column": "n"}, MISSED.name)))  # fmt: skip
    topic = Suite("topics/sensors", (Expectation("expect_x", {}, "x", "stop"),))
    table = SuiteReport(
        suite, [outcome(NOON, replace(MISSED, rows=str(tmp_path / "rows.jsonl")), MET), outcome(0, MET)]
    )
    page = write_report_page(tmp_path / "docs", [table, SuiteReport(topic, broken_counts={"x": 1234})])
    text = page.read_text("utf-8")
    assert "2 of 5 rows" in text
    assert "device: &lt;b&gt;" in text
    assert "a &amp; b" in text
    assert "<a href='../rows.jsonl'>unexpected rows</a>" in text
    assert ">stop</span>" in text
    assert "1,234 records of one day failed" in text
    assert "http" not in text
    assert render_page([SuiteReport(suite)], tmp_path).count("No batch is checked yet") == 1


def minutes(folder: Path, rows: list[tuple[str | None, float, int, int]]) -> None:
    """A table of newest values as the stream writes it: device, mean, readings, and the minute."""
    at = pa.timestamp("us", tz="UTC")
    ends = pa.array([(NOON + minute * MINUTE) * 1_000 for *_, minute in rows], pa.int64()).cast(at)
    starts = pa.array([(NOON + (minute - 1) * MINUTE) * 1_000 for *_, minute in rows], pa.int64()).cast(at)
    columns = {
        "device": pa.array([device for device, *_ in rows], pa.string()),
        "temperature": pa.array([mean for _, mean, _, _ in rows], pa.float64()),
        "readings": pa.array([count for _, _, count, _ in rows], pa.int64()),
        "records": pa.array([count for _, _, count, _ in rows], pa.int64()),
        "window_start": starts,
        "window_end": ends,
    }
    write_deltalake(folder / "warehouse" / "latest" / "sensor_minute", pa.table(columns), mode="append")


def alerts(folder: Path, number: int, rows: list[tuple[str, int, int]]) -> None:
    """What a batch of a function with a memory writes: payments, how far apart they were, and when that was."""
    at = pa.timestamp("us", tz="UTC")
    times = pa.array([(NOON + minute * MINUTE) * 1_000 for *_, minute in rows], pa.int64()).cast(at)
    columns = {
        "card": ["c"] * len(rows),
        "payment": [payment for payment, *_ in rows],
        "here": ["DE"] * len(rows),
        "there": ["FR"] * len(rows),
        "apart_ms": [apart for _, apart, _ in rows],
        "window_start": times,
        "window_end": times,
        "batch_id": pa.array([number] * len(rows), pa.int64()),
    }
    once = CommitProperties(app_transactions=[Transaction("card_alerts", number)])
    table = folder / "warehouse" / "panes" / "card_alerts"
    write_deltalake(table, pa.table(columns), mode="append", commit_properties=once)


@pytest.mark.spark
def test_rows_that_tell_of_a_time_before_the_last_check_are_checked_and_repeats_over_all_batches(
    spark: "SparkSession", tmp_path: Path
) -> None:
    suite, plan = load_suite("panes/card_alerts"), catalog.load_plan("card_alerts")
    assert suite is not None

    def check() -> dict[str, int | None]:
        """How many rows did not meet what of the one batch that is due."""
        (one,) = check_table(lambda: spark, suite, plan, None, tmp_path / "warehouse", tmp_path, lambda: NOON)
        return {met.name: met.unexpected for met in one.results if not met.passed}

    apart, told_once = "apart_ms_values_to_be_between", "payment_values_to_be_unique"
    alerts(tmp_path, 3, [("p1", 5, 90), ("p2", 6, 91)])
    assert check() == {}
    alerts(tmp_path, 4, [("p3", -5, 10), ("p4", 6, 11)])
    alerts(tmp_path, 7, [("p5", 6, 12)])
    assert check() == {apart: 1}
    alerts(tmp_path, 9, [("p2", 6, 13), ("p6", 7, 14), ("p6", 8, 14), ("p7", 9, 15)])
    assert check() == {told_once: 3}
    kept = CheckResultStore(tmp_path, suite.subject)
    assert list_due_batches(suite, plan, None, tmp_path / "warehouse", kept) == []
    (newest, *before) = kept.read_all()
    assert [one.batch for one in (newest, *before)] == [
        CheckedBatch("rows", 9, 7),
        CheckedBatch("rows", 7, 3),
        CheckedBatch("rows", 3),
    ]
    (wrong,) = (met for met in newest.results if not met.passed)
    assert wrong.rows is not None
    rows = [json.loads(line) for line in Path(wrong.rows).read_text("utf-8").splitlines()]
    assert sorted(row["payment"] for row in rows) == ["p2", "p6", "p6"]
    assert sorted(example["payment"] for example in wrong.examples) == ["p2", "p6", "p6"]


def test_batches_of_another_kind_are_no_measure_of_what_is_due(tmp_path: Path) -> None:
    suite, plan = load_suite("panes/card_alerts"), catalog.load_plan("card_alerts")
    assert suite is not None
    kept = CheckResultStore(tmp_path, suite.subject)
    kept.save(BatchCheckResult(suite.subject, CheckedBatch("final", NOON), NOON, ()))
    alerts(tmp_path, 3, [("p1", 5, 1)])
    assert list_due_batches(suite, plan, None, tmp_path / "warehouse", kept) == [CheckedBatch("rows", 3)]
    kept.save(BatchCheckResult(suite.subject, CheckedBatch("rows", 3), NOON + 1, ()))
    assert list_due_batches(suite, plan, None, tmp_path / "warehouse", kept) == []
    assert [one.batch.cut for one in kept.read_all()] == ["rows", "final"]


def test_without_a_final_window_nothing_is_due_and_spark_is_not_started(tmp_path: Path) -> None:
    suite, plan = load_suite("latest/sensor_minute"), catalog.load_plan("sensor_minute")
    assert suite is not None

    def due_at(watermark: int) -> list[int]:
        kept = CheckResultStore(tmp_path, suite.subject)
        found = list_due_batches(suite, plan, watermark, tmp_path / "warehouse", kept)
        return [batch.upto for batch in found]

    lateness = plan.only_stage.lateness
    assert due_at(NOON + lateness) == []
    minutes(tmp_path, [("a", 20.0, 3, 1), ("b", 21.0, 2, 2)])
    assert due_at(NOON + lateness) == []
    assert due_at(NOON + MINUTE + lateness) == [NOON + MINUTE]
    CheckResultStore(tmp_path, suite.subject).save(
        BatchCheckResult(suite.subject, CheckedBatch("final", NOON + 2 * MINUTE), NOON, ())
    )
    assert due_at(NOON + 9 * MINUTE + lateness) == []


@pytest.mark.spark
def test_windows_are_checked_once_they_are_final_and_the_rows_that_are_wrong_are_told(
    spark: "SparkSession", tmp_path: Path
) -> None:
    suite, plan = load_suite("latest/sensor_minute"), catalog.load_plan("sensor_minute")
    assert suite is not None

    def check(watermark: int | None) -> list[BatchCheckResult]:
        return check_table(
            lambda: spark, suite, plan, watermark, tmp_path / "warehouse", tmp_path, lambda: NOON
        )

    lateness = plan.only_stage.lateness
    assert check(NOON + lateness) == []
    minutes(tmp_path, [("a", 20.0, 3, 1), ("b", 99.0, 2, 2), (None, 1.0, 1, 2), ("c", -99.0, 1, 5)])
    assert check(None) == []
    (first,) = check(NOON + MINUTE + lateness)
    assert first.passed
    assert {one.checked for one in first.results if one.checked is not None} == {1}
    (second,) = check(NOON + 2 * MINUTE + lateness)
    found = {one.name: one for one in second.results}
    assert {name: one.unexpected for name, one in found.items() if not one.passed} == {
        "device_values_to_not_be_null": 1,
        "temperature_values_to_be_between": 1,
    }
    wrong = found["temperature_values_to_be_between"]
    assert wrong.rows is not None
    assert '"device": "b"' in Path(wrong.rows).read_text("utf-8")
    assert wrong.examples[0]["temperature"] == 99.0
    assert check(NOON + 2 * MINUTE + lateness) == []
    minutes(tmp_path, [("d", 1.0, 1, 7), ("d", 1.0, 1, 7), ("e", 1.0, 1, 7)])
    (third,) = check(NOON + 9 * MINUTE + lateness)
    (twice,) = (one for one in third.results if "unique" in one.name)
    assert twice.rows is not None
    assert [json.loads(line)["device"] for line in Path(twice.rows).read_text("utf-8").splitlines()] == [
        "d",
        "d",
    ]
    assert [one.batch.upto for one in CheckResultStore(tmp_path, suite.subject).read_all()] == [
        NOON + 9 * MINUTE,
        NOON + 2 * MINUTE,
        NOON + MINUTE,
    ]


JAVA = """An error occurred while calling o7047.collectToPython.
: org.apache.spark.SparkException: Unclosed group near index 1
\tat org.apache.spark.scheduler"""


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (JAVA, "org.apache.spark.SparkException: Unclosed group near index 1"),
        ('Error: The column "gone" does not exist.\nand more', 'Error: The column "gone" does not exist.'),
        ("", "Great Expectations gives no reason"),
    ],
)
def test_why_an_expectation_could_not_be_asked_is_the_first_line_that_says_it(
    message: str, said: str
) -> None:
    result = SimpleNamespace(
        expectation_config=SimpleNamespace(type="expect_x", meta={"name": "x"}),
        result={},
        success=False,
        exception_info={"metric": {"raised_exception": True, "exception_message": message}},
    )
    assert to_expectation_result(result).problem == said


@pytest.mark.spark
def test_the_rows_are_told_of_what_most_rows_should_have_met(spark: "SparkSession") -> None:
    rows = spark.createDataFrame([(float(level),) for level in range(10)], "level DOUBLE")
    one = Expectation(MET.type, {"column": "level", "max_value": 6, "mostly": 0.9}, "most")
    broken = select_unexpected_rows(one, rows)
    assert broken is not None
    assert [row["level"] for row in broken.collect()] == [7.0, 8.0, 9.0]
