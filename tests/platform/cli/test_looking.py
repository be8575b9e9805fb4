"""Commands that look and change nothing, on a machine where nothing runs."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile

from penstock.core.clock import now_ms
from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord, DesiredRunState, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.infra.ports import find_free_ports
from penstock.platform.control import open_control_store


@pytest.fixture
def sensor_table(home: Path) -> None:
    """A table of three windows."""
    starts = [datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in range(3)]
    rows = {"device": ["a", "b", "c"], "window_start": starts, "temperature": [20.0, 20.5, 21.25]}
    write_deltalake(home / "warehouse" / "latest" / "sensor_minute", pa.table(rows))


def test_status_of_nothing_is_not_right_and_makes_nothing(run, home: Path) -> None:
    answer = run("status")
    assert answer.code == 1
    assert "nothing runs; start the stack with `penstock up`" in answer.out
    assert not home.exists()


def test_status_shows_each_stream_and_what_it_last_did(run, home: Path) -> None:
    store = open_control_store(f"sqlite:///{home}/control.db")
    store.set_desired_state("sensor_minute", DesiredRunState.RUNNING, 0)
    account = PartitionAccount("sensors", 0, 0, 12, 12, 12, 0, 0, 0)
    store.record_batch(
        BatchRecord("sensor_minute", 7, 1, "data", 1_000, 500, (account,), rows=5, lag_records=3)
    )
    store.report_health(StreamHealth("sensor_minute", StreamState.FAILED, "no such field", 0))
    store.close()
    plain = run("status").out
    assert "sensor_minute  running  failed  7" in plain
    assert "no such field" in plain
    (stream,) = json.loads(run("status", "--json").out)["streams"]
    assert (stream["state"], stream["healthy"], stream["last"]["rows"]) == ("failed", False, 5)


def test_status_says_of_a_stream_what_the_host_says_that_has_it(run, home: Path) -> None:
    def shown() -> tuple[str, bool]:
        (stream,) = json.loads(run("status", "--json").out)["streams"]
        return stream["state"], stream["healthy"]

    store = open_control_store(f"sqlite:///{home}/control.db")
    store.set_desired_state("sensor_minute", DesiredRunState.RUNNING, 0)
    assert shown() == ("stopped", False)
    store.acquire_lease("sensor_minute", "killed", 0, 1)
    store.report_health(StreamHealth("sensor_minute", StreamState.RUNNING, "", 0, 1))
    assert shown() == ("stopped", False)
    store.acquire_lease("sensor_minute", "next", now_ms(), 60_000)
    assert shown() == ("starting", True)
    store.report_health(StreamHealth("sensor_minute", StreamState.RUNNING, "", 0, 2))
    assert shown() == ("running", True)
    store.acquire_lease("sensor_minute", "next", 0, 1)
    store.report_health(StreamHealth("sensor_minute", StreamState.FAILED, "no such field", 0, 3))
    assert shown() == ("failed", False)
    store.set_desired_state("sensor_minute", DesiredRunState.DRAINED, 1)
    assert shown() == ("drained", True), "no host need be there to say so"
    store.close()


def test_status_says_which_file_was_changed_after_its_stream_was_begun(
    run, home: Path, write: WriteCatalogFile
) -> None:
    write(
        "one.py", "    from penstock.pipelines.catalog import _shared" + PIPELINE_TEMPLATE.format(name="one")
    )
    write("_shared.py", "X = 1")
    store = open_control_store(f"sqlite:///{home}/control.db")
    store.set_desired_state("one", DesiredRunState.RUNNING, 0)
    store.acquire_lease("one", "host", now_ms(), 60_000)
    store.report_health(StreamHealth("one", StreamState.RUNNING, "", now_ms() + 60_000))
    assert "changed since" not in run("status").out
    store.report_health(StreamHealth("one", StreamState.RUNNING, "", 0))
    store.close()
    assert "changed since the start: `penstock stream plan-upgrade one`" in run("status").out


def test_settings_are_shown_with_where_they_came_from(
    run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CONTROL_URL", "postgresql://me:secret@127.0.0.1/db")
    shown = {one["name"]: one for one in json.loads(run("status", "--settings", "--json").out)}
    assert (shown["home"]["origin"], shown["home"]["source"]) == ("variable", "PENSTOCK_HOME")
    assert shown["kafka.port"]["origin"] == "default"
    assert shown["control_url"]["value"] == "postgresql://me:***@127.0.0.1/db"
    assert "PENSTOCK_HOME" in run("status", "--settings").out


def test_doctor_names_what_is_missing_and_the_way_out(run, home: Path) -> None:
    answer = run("doctor", "--json")
    found = {one["check"]: one for one in json.loads(answer.out)}
    assert answer.code == 1
    assert found["java"]["ok"]
    assert found["packages"]["ok"]
    assert found["disk"]["ok"]
    assert not found["jars"]["ok"]
    assert "`penstock up` downloads them" in found["jars"]["detail"]
    assert not home.exists()


def test_doctor_looks_at_what_the_settings_place_elsewhere(
    run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = find_free_ports(1)
    (tmp_path / "file").write_text("")
    for name, value in {
        "KAFKA__REGISTRY": f"http://127.0.0.1:{port}",
        "SPARK__MASTER": f"spark://127.0.0.1:{port}",
        "DAGSTER__STORAGE_URL": f"postgresql://dagster:hidden@127.0.0.1:{port}/dagster",
        "WAREHOUSE": str(tmp_path / "file" / "warehouse"),
    }.items():
        monkeypatch.setenv(f"PENSTOCK_{name}", value)
    found = {one["check"]: one for one in json.loads(run("doctor", "--json").out)}
    for what, said in {
        "registry": f"127.0.0.1:{port}",
        "spark master": f"no Spark master answers at spark://127.0.0.1:{port}",
        "dagster storage": "Start that server",
        "warehouse": "is not a folder. Move it away, or set PENSTOCK_WAREHOUSE",
    }.items():
        assert not found[what]["ok"]
        assert said in found[what]["detail"]
    assert "hidden" not in str(found)


def test_a_table_is_shown_newest_first(run, sensor_table: None) -> None:
    answer = run("table", "show", "sensor_minute", "--limit", "2")
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "device  window_start         temperature",
        "c       2026-01-01 00:02:00  21.250",
        "b       2026-01-01 00:01:00  20.500",
    ]


def test_tables_are_listed(run, home: Path, sensor_table: None) -> None:
    assert json.loads(run("table", "list", "--json").out) == [
        {"kind": "latest", "name": "sensor_minute", "address": f"{home}/warehouse/latest/sensor_minute"}
    ]


def test_a_table_that_is_not_there_is_told_with_those_that_are(run, sensor_table: None) -> None:
    answer = run("table", "show", "sensor_hour")
    assert answer.code == 2
    assert "there is no table 'sensor_hour'; known names: sensor_minute" in answer.err


def test_logs_of_a_program_that_has_none_are_refused_with_those_that_there_are(run, home: Path) -> None:
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "host.log").write_text("one\ntwo\nthree\n", "utf-8")
    assert run("logs", "-n", "2").out.splitlines() == ["host       two", "host       three"]
    assert len(run("logs", "-n", "5").out.splitlines()) == 3
    assert run("logs", "-n", "0").out == ""
    assert run("logs", "-n", "-1").code == 2
    answer = run("logs", "nonsense")
    assert (answer.code, "known names: host" in answer.err) == (2, True)


def test_down_where_nothing_runs_does_nothing(run) -> None:
    assert run("down").code == 0


def test_several_streams_are_asked_for_together_or_none_is(run) -> None:
    refused = run("stream", "start", "sensor_minute", "nonsense", "--wait", "0")
    assert refused.code == 2
    assert json.loads(run("status", "--json").out)["streams"] == []
    assert run("stream", "start", "sensor_minute", "archive-sensors", "--wait", "0").code == 0
    listed = json.loads(run("status", "--json").out)["streams"]
    assert {one["stream"] for one in listed} == {"sensor_minute", "archive-sensors"}


def test_numbers_that_json_does_not_know_are_texts(run, home: Path) -> None:
    values = [1.5, float("nan"), float("inf"), float("-inf")]
    rows = {"n": [1, 2, 3, 4], "deviation": values, "several": [[one] for one in values]}
    write_deltalake(home / "warehouse" / "latest" / "sensor_minute", pa.table(rows))

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    shown = json.loads(run("table", "show", "sensor_minute", "--json").out, parse_constant=refuse)
    texts = [1.5, "NaN", "Infinity", "-Infinity"]
    assert sorted((row["n"], row["deviation"]) for row in shown) == list(enumerate(texts, 1))
