"""Checks of tables: due batches, results and unexpected rows."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from penstock.pipelines import catalog
from penstock.quality.expectations.check_batches import DAY_MS, CheckedBatch
from penstock.quality.expectations.check_results import (
    BatchCheckResult,
    CheckResultStore,
    ExpectationResult,
    to_expectation_result,
)
from penstock.quality.expectations.report_page import SuiteReport, render_page, write_report_page
from penstock.quality.expectations.suite import Expectation, Suite, load_suite
from penstock.quality.expectations.table_checks import check_table, list_due_batches, select_unexpected_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = 1_800_000_000_000
MINUTE = 60_000


PASSED = ExpectationResult(
    "n_between", "expect_column_values_to_be_between", "why", passed=True, checked=5, unexpected=0
)
FAILED = ExpectationResult("n_set", "expect_column_values_to_be_in_set", "why", passed=False, checked=5,
             unexpected=2, examples=({"n": 7, "device": "<b>"},), rows="/rows.jsonl")  # fmt: skip


def build_result(upto: int, *results: ExpectationResult) -> BatchCheckResult:
    return BatchCheckResult("latest/minutes", CheckedBatch("final", upto, None), NOON, results)


def test_stored_results_are_read_newest_first(tmp_path: Path) -> None:
    store = CheckResultStore(tmp_path, "latest/minutes")
    assert store.find_newest() is None
    for upto in (NOON, NOON + DAY_MS, NOON + 1):
        store.save(build_result(upto, PASSED, FAILED))
    assert [result.batch.upto for result in store.read_all()] == [NOON + DAY_MS, NOON + 1, NOON]
    assert store.find_newest() == build_result(NOON + DAY_MS, PASSED, FAILED)


def test_the_page_shows_results_without_external_resources(tmp_path: Path) -> None:
    suite = Suite("latest/minutes", (Expectation(PASSED.type, {"column": "n"}, PASSED.name, None, "a & b"),
                                     Expectation(FAILED.type, {"column": "n"}, FAILED.name)))  # fmt: skip
    topic = Suite("topics/sensors", (Expectation("expect_x", {}, "x", "stop"),))
    table = SuiteReport(
        suite,
        [
            build_result(NOON, replace(FAILED, rows=str(tmp_path / "rows.jsonl")), PASSED),
            build_result(0, PASSED),
        ],
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


def write_minutes(folder: Path, rows: list[tuple[str | None, float, int, int]]) -> None:
    """Write the latest values of a stream: device, mean, readings, and the minute."""
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


def write_alerts(folder: Path, number: int, rows: list[tuple[str, int, int]]) -> None:
    """Write the panes of one batch of a stateful function: payments, their distance in ms, and the minute."""
    at = pa.timestamp("us", tz="UTC")
    times = pa.array([(NOON + minute * MINUTE) * 1_000 for *_, minute in rows], pa.int64()).cast(at)
    columns = {
        "card": ["c"] * len(rows),
        "payment": [payment for payment, *_ in rows],
        "country": ["DE"] * len(rows),
        "previous_country": ["FR"] * len(rows),
        "apart_ms": [apart for _, apart, _ in rows],
        "window_start": times,
        "window_end": times,
        "batch_id": pa.array([number] * len(rows), pa.int64()),
    }
    once = CommitProperties(app_transactions=[Transaction("card_alerts", number)])
    table = folder / "warehouse" / "panes" / "card_alerts"
    write_deltalake(table, pa.table(columns), mode="append", commit_properties=once)


@pytest.mark.spark
def test_new_rows_are_checked_by_batch_and_duplicates_across_batches(
    spark: "SparkSession", tmp_path: Path
) -> None:
    suite, plan = load_suite("panes/card_alerts"), catalog.load_plan("card_alerts")
    assert suite is not None

    def check() -> dict[str, int | None]:
        """Check the one due batch; return the number of unexpected rows by failed expectation."""
        (result,) = check_table(
            lambda: spark, suite, plan, None, tmp_path / "warehouse", tmp_path, lambda: NOON
        )
        return {met.name: met.unexpected for met in result.results if not met.passed}

    apart, unique = "apart_ms_values_to_be_between", "payment_values_to_be_unique"
    write_alerts(tmp_path, 3, [("p1", 5, 90), ("p2", 6, 91)])
    assert check() == {}
    write_alerts(tmp_path, 4, [("p3", -5, 10), ("p4", 6, 11)])
    write_alerts(tmp_path, 7, [("p5", 6, 12)])
    assert check() == {apart: 1}
    write_alerts(tmp_path, 9, [("p2", 6, 13), ("p6", 7, 14), ("p6", 8, 14), ("p7", 9, 15)])
    assert check() == {unique: 3}
    store = CheckResultStore(tmp_path, suite.subject)
    assert list_due_batches(suite, plan, None, tmp_path / "warehouse", store) == []
    (newest, *earlier) = store.read_all()
    assert [result.batch for result in (newest, *earlier)] == [
        CheckedBatch("rows", 9, 7),
        CheckedBatch("rows", 7, 3),
        CheckedBatch("rows", 3),
    ]
    (failed,) = (met for met in newest.results if not met.passed)
    assert failed.rows is not None
    rows = [json.loads(line) for line in Path(failed.rows).read_text("utf-8").splitlines()]
    assert sorted(row["payment"] for row in rows) == ["p2", "p6", "p6"]
    assert sorted(example["payment"] for example in failed.examples) == ["p2", "p6", "p6"]


def test_results_of_another_batch_kind_do_not_affect_due_batches(tmp_path: Path) -> None:
    suite, plan = load_suite("panes/card_alerts"), catalog.load_plan("card_alerts")
    assert suite is not None
    store = CheckResultStore(tmp_path, suite.subject)
    store.save(BatchCheckResult(suite.subject, CheckedBatch("final", NOON), NOON, ()))
    write_alerts(tmp_path, 3, [("p1", 5, 1)])
    assert list_due_batches(suite, plan, None, tmp_path / "warehouse", store) == [CheckedBatch("rows", 3)]
    store.save(BatchCheckResult(suite.subject, CheckedBatch("rows", 3), NOON + 1, ()))
    assert list_due_batches(suite, plan, None, tmp_path / "warehouse", store) == []
    assert [result.batch.cut for result in store.read_all()] == ["rows", "final"]


def test_without_a_final_window_no_batch_is_due(tmp_path: Path) -> None:
    suite, plan = load_suite("latest/sensor_minute"), catalog.load_plan("sensor_minute")
    assert suite is not None

    def list_due_ends(watermark: int) -> list[int]:
        store = CheckResultStore(tmp_path, suite.subject)
        batches = list_due_batches(suite, plan, watermark, tmp_path / "warehouse", store)
        return [batch.upto for batch in batches]

    lateness = plan.only_stage.lateness
    assert list_due_ends(NOON + lateness) == []
    write_minutes(tmp_path, [("a", 20.0, 3, 1), ("b", 21.0, 2, 2)])
    assert list_due_ends(NOON + lateness) == []
    assert list_due_ends(NOON + MINUTE + lateness) == [NOON + MINUTE]
    CheckResultStore(tmp_path, suite.subject).save(
        BatchCheckResult(suite.subject, CheckedBatch("final", NOON + 2 * MINUTE), NOON, ())
    )
    assert list_due_ends(NOON + 9 * MINUTE + lateness) == []


@pytest.mark.spark
def test_final_windows_are_checked_once_with_their_unexpected_rows(
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
    write_minutes(tmp_path, [("a", 20.0, 3, 1), ("b", 99.0, 2, 2), (None, 1.0, 1, 2), ("c", -99.0, 1, 5)])
    assert check(None) == []
    (first,) = check(NOON + MINUTE + lateness)
    assert first.passed
    assert {result.checked for result in first.results if result.checked is not None} == {1}
    (second,) = check(NOON + 2 * MINUTE + lateness)
    results_by_name = {result.name: result for result in second.results}
    assert {name: result.unexpected for name, result in results_by_name.items() if not result.passed} == {
        "device_values_to_not_be_null": 1,
        "temperature_values_to_be_between": 1,
    }
    failed = results_by_name["temperature_values_to_be_between"]
    assert failed.rows is not None
    assert '"device": "b"' in Path(failed.rows).read_text("utf-8")
    assert failed.examples[0]["temperature"] == 99.0
    assert check(NOON + 2 * MINUTE + lateness) == []
    write_minutes(tmp_path, [("d", 1.0, 1, 7), ("d", 1.0, 1, 7), ("e", 1.0, 1, 7)])
    (third,) = check(NOON + 9 * MINUTE + lateness)
    (duplicates,) = (result for result in third.results if "unique" in result.name)
    assert duplicates.rows is not None
    assert [json.loads(line)["device"] for line in Path(duplicates.rows).read_text("utf-8").splitlines()] == [
        "d",
        "d",
    ]
    assert [result.batch.upto for result in CheckResultStore(tmp_path, suite.subject).read_all()] == [
        NOON + 9 * MINUTE,
        NOON + 2 * MINUTE,
        NOON + MINUTE,
    ]


JAVA_ERROR = """An error occurred while calling o7047.collectToPython.
: org.apache.spark.SparkException: Unclosed group near index 1
\tat org.apache.spark.scheduler"""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (JAVA_ERROR, "org.apache.spark.SparkException: Unclosed group near index 1"),
        ('Error: The column "gone" does not exist.\nand more', 'Error: The column "gone" does not exist.'),
        ("", "Great Expectations gives no reason"),
    ],
)
def test_the_problem_of_an_expectation_is_the_first_telling_line(error: str, message: str) -> None:
    result = SimpleNamespace(
        expectation_config=SimpleNamespace(type="expect_x", meta={"name": "x"}),
        result={},
        success=False,
        exception_info={"metric": {"raised_exception": True, "exception_message": error}},
    )
    assert to_expectation_result(result).problem == message


@pytest.mark.spark
def test_unexpected_rows_are_selected_for_a_mostly_expectation(spark: "SparkSession") -> None:
    rows = spark.createDataFrame([(float(level),) for level in range(10)], "level DOUBLE")
    expectation = Expectation(PASSED.type, {"column": "level", "max_value": 6, "mostly": 0.9}, "most")
    unexpected = select_unexpected_rows(expectation, rows)
    assert unexpected is not None
    assert [row["level"] for row in unexpected.collect()] == [7.0, 8.0, 9.0]
