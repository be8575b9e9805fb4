"""`penstock check` and the page of expectations, without Spark."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.core.clock import now_ms
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.record_schemas import QUARANTINE_SCHEMA
from penstock.engine.host.control import BatchRecord
from penstock.platform.control import open_control_store
from penstock.platform.services import expectations, statistics
from penstock.platform.services.expectations import (
    LoadedSuites,
    count_broken_checks,
    find_broken_examples,
    list_checked_suites,
    list_due_tables,
)
from penstock.platform.services.stream_catalog import load_valid_plans
from penstock.platform.settings import load_settings
from penstock.quality.errors import SuiteError
from penstock.quality.expectations.suite import Expectation

HOUR = 3_600_000


@pytest.fixture
def damaged_table(home: Path) -> Path:
    """A table with final windows whose log cannot be read."""
    table = home / "warehouse/latest/sensor_minute"
    write_deltalake(table, pa.table({"device": ["a"]}))
    (table / "_delta_log/00000000000000000000.json").write_text("{no json")
    store = open_control_store(f"sqlite:///{home}/control.db")
    store.record_batch(BatchRecord("sensor_minute", 0, 1, "tick", 0, 2 * HOUR, ()))
    store.close()
    return table


def test_an_unreadable_table_is_reported_and_others_are_checked(
    run: Callable, damaged_table: Path, home: Path
) -> None:
    result = run("check", "latest/sensor_minute", "latest/visits")
    assert result.code == 1
    assert f"latest/sensor_minute not checked: {damaged_table} cannot be opened" in result.err
    assert "latest/visits was not checked" not in result.err
    assert "no window is final yet" in result.out
    assert (home / "quality/docs/index.html").exists()


def test_a_topic_is_refused_with_the_command_for_its_checks(run: Callable) -> None:
    result = run("check", "topics/sensors")
    assert result.code == 2
    assert "records of the topic 'sensors' are checked when a stream reads them" in result.err
    assert "penstock table show STREAM --kind checks" in result.err


def test_a_suite_of_a_table_without_a_pipeline_is_reported(
    run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "load_table_suites", dict)
    result = run("check", "latest/visits")
    assert result.code == 2
    assert "the suite of 'latest/visits' exists, but no valid pipeline writes this table" in result.err


def test_statistics_report_an_invalid_suite(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    invalid_suites = LoadedSuites(
        (), {"latest/visits": SuiteError("visits.yaml", "statistics", "they are 5", "Fix them")}
    )
    monkeypatch.setattr(statistics, "load_all_suites", lambda: invalid_suites)
    result = run("statistics", "latest/visits")
    assert result.code == 2
    assert "visits.yaml: statistics: they are 5. Fix them." in result.err


@pytest.mark.usefixtures("damaged_table")
def test_an_unreadable_table_is_due() -> None:
    assert list(list_due_tables(load_settings().settings)) == [("latest/sensor_minute", 0)]


def test_the_page_shows_columns_and_owners(run: Callable, home: Path) -> None:
    assert run("check", "latest/visits").code == 0
    page = (home / "quality/docs/index.html").read_text()
    topic, table = (
        page.partition(f"<h2 id='{subject}'>")[2].partition("<h2")[0]
        for subject in ("topics/cards", "latest/card_velocity")
    )
    assert "Owner: team:payments." in topic
    assert (
        "<td><code>card</code><span class='action'>personal</span></td><td><code>string</code></td>"
        "<td>The card that paid.</td>"
    ) in topic
    assert (
        "<td><code>card</code><span class='action'>personal</span></td><td><code>string</code></td>"
        "<td>part of the key</td><td><code>cards.card</code></td>"
    ) in table


def test_a_topic_without_a_pipeline_is_shown_as_unchecked(run: Callable, home: Path) -> None:
    assert run("check", "latest/visits").code == 0
    page = (home / "quality/docs/index.html").read_text()
    log, clicks = (
        page.partition(f"<h2 id='topics/{topic}'>")[2].partition("<h2")[0]
        for topic in ("access-log", "clicks")
    )
    assert ("No pipeline reads this topic" in log, "not checked yet" in log, ">passed<" in log) == (
        True,
        True,
        False,
    )
    assert ("No pipeline reads this topic" in clicks, ">passed<" in clicks) == (False, True)
    subjects = {suite.subject for suite in list_checked_suites() if suite.topic is not None}
    assert subjects == {
        f"topics/{topic_of(source)}" for plan in load_valid_plans() for source in plan.sources
    }
    assert {"topics/clicks", "topics/sensors"} < subjects


def test_a_damaged_check_table_is_shown_at_its_topic(run: Callable, home: Path) -> None:
    account = home / "warehouse/checks/sensor_minute"
    write_deltalake(account, pa.table({"topic": ["sensors"]}))
    next(account.glob("*.parquet")).write_bytes(b"")
    assert run("check", "latest/visits").code == 0
    page = (home / "quality/docs/index.html").read_text()
    assert f"{account} cannot be read" in page
    assert "<h2 id='latest/visits'>" in page


def test_failed_records_are_listed_by_position_or_by_batch(home: Path) -> None:
    settings, hour_ago = load_settings().settings, now_ms() * 1_000 - HOUR * 1_000
    clocks = [hour_ago - 48 * HOUR * 1_000, hour_ago, hour_ago + 1]
    time = pa.timestamp("us", tz="UTC")
    for stream in ("sensor_minute", "last_readings"):
        columns = {"topic": ["sensors"] * 3, "check": ["dry"] * 3, "records": [9, 2, 1_000]}
        columns |= {"batch_id": [1, 7, 8], "batch_clock": pa.array(clocks, pa.int64()).cast(time)}
        write_deltalake(home / f"warehouse/checks/{stream}", pa.table(columns))
    quarantined = [(0, 5, "check:warm"), (2, 3, "malformed"), (1, 9, "check:warm")]
    row_dicts = [
        {"partition": partition, "offset": offset, "reason": reason, "stream": "s"}
        for partition, offset, reason in quarantined
    ]
    schema = pa.schema([*QUARANTINE_SCHEMA, pa.field("batch_id", pa.int64()), pa.field("batch_clock", time)])
    write_deltalake(home / "warehouse/quarantine/sensors", pa.Table.from_pylist(row_dicts, schema))
    warning, quarantining = (
        Expectation("expect_x", {}, *arguments) for arguments in (("dry", "warn"), ("warm", "quarantine"))
    )
    assert find_broken_examples(settings, "sensors", warning) == [
        "sensor_minute, batch 8: 1,000 records",
        "last_readings, batch 8: 1,000 records",
        "sensor_minute, batch 7: 2 records",
        "last_readings, batch 7: 2 records",
    ]
    assert find_broken_examples(settings, "sensors", quarantining) == ["sensors 1:9", "sensors 0:5"]
    assert (
        find_broken_examples(settings, "clicks", warning)
        == find_broken_examples(settings, "clicks", quarantining)
        == []
    )
    assert count_broken_checks(settings, "sensors", 24 * HOUR) == {"dry": 1_002}
