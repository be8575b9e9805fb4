"""Commands that change nothing, on a machine where nothing runs."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.catalogs import PIPELINE_TEMPLATE, WriteCatalogFile

from penstock.core.clock import now_ms
from penstock.engine.host.control import DesiredRunState, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.infra.ports import find_free_ports
from penstock.platform.control import open_control_store


@pytest.fixture
def sensor_table(home: Path) -> None:
    """A table of three windows."""
    starts = [datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in range(3)]
    rows = {"device": ["a", "b", "c"], "window_start": starts, "temperature": [20.0, 20.5, 21.25]}
    write_deltalake(home / "warehouse" / "latest" / "sensor_minute", pa.table(rows))


def test_status_without_a_stack_exits_with_1(run, home: Path) -> None:
    result = run("status")
    assert result.code == 1
    assert "nothing runs; start the stack with `penstock up`" in result.out
    assert not home.exists()


def test_status_shows_the_health_of_the_current_lease_holder(run, home: Path) -> None:
    def read_stream() -> tuple[str, bool]:
        (stream,) = json.loads(run("status", "--json").out)["streams"]
        return stream["state"], stream["healthy"]

    store = open_control_store(f"sqlite:///{home}/control.db")
    store.set_desired_state("sensor_minute", DesiredRunState.RUNNING, 0)
    assert read_stream() == ("stopped", False)
    store.acquire_lease("sensor_minute", "killed", 0, 1)
    store.report_health(StreamHealth("sensor_minute", StreamState.RUNNING, "", 0, 1))
    assert read_stream() == ("stopped", False)
    store.acquire_lease("sensor_minute", "next", now_ms(), 60_000)
    assert read_stream() == ("starting", True)
    store.report_health(StreamHealth("sensor_minute", StreamState.RUNNING, "", 0, 2))
    assert read_stream() == ("running", True)
    store.acquire_lease("sensor_minute", "next", 0, 1)
    store.report_health(StreamHealth("sensor_minute", StreamState.FAILED, "no such field", 0, 3))
    assert read_stream() == ("failed", False)
    store.set_desired_state("sensor_minute", DesiredRunState.DRAINED, 1)
    assert read_stream() == ("drained", True), "without a host"
    store.close()


def test_status_names_files_changed_since_the_start(run, home: Path, write: WriteCatalogFile) -> None:
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


def test_settings_are_shown_with_their_source(run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CONTROL_URL", "postgresql://me:secret@127.0.0.1/db")
    settings = {item["name"]: item for item in json.loads(run("status", "--settings", "--json").out)}
    assert (settings["home"]["origin"], settings["home"]["source"]) == ("variable", "PENSTOCK_HOME")
    assert settings["kafka.port"]["origin"] == "default"
    assert settings["control_url"]["value"] == "postgresql://me:***@127.0.0.1/db"
    assert "PENSTOCK_HOME" in run("status", "--settings").out


def test_doctor_names_missing_parts_and_the_fix(run, home: Path) -> None:
    result = run("doctor", "--json")
    findings = {item["check"]: item for item in json.loads(result.out)}
    assert result.code == 1
    assert findings["java"]["ok"]
    assert findings["packages"]["ok"]
    assert findings["disk"]["ok"]
    assert not findings["jars"]["ok"]
    assert "`penstock up` downloads them" in findings["jars"]["detail"]
    assert not home.exists()


def test_doctor_checks_external_services(
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
    findings = {item["check"]: item for item in json.loads(run("doctor", "--json").out)}
    for check, detail in {
        "registry": f"127.0.0.1:{port}",
        "spark master": f"no Spark master answers at spark://127.0.0.1:{port}",
        "dagster storage": "Start that server",
        "warehouse": "is not a folder. Move it away, or set PENSTOCK_WAREHOUSE",
    }.items():
        assert not findings[check]["ok"]
        assert detail in findings[check]["detail"]
    assert "hidden" not in str(findings)


def test_a_table_is_shown_newest_first(run, sensor_table: None) -> None:
    result = run("table", "show", "sensor_minute", "--limit", "2")
    assert result.code == 0
    assert result.out.splitlines() == [
        "device  window_start         temperature",
        "c       2026-01-01 00:02:00       21.250",
        "b       2026-01-01 00:01:00       20.500",
    ]


def test_tables_are_listed(run, home: Path, sensor_table: None) -> None:
    assert json.loads(run("table", "list", "--json").out) == [
        {"kind": "latest", "name": "sensor_minute", "address": f"{home}/warehouse/latest/sensor_minute"}
    ]


def test_an_unknown_table_is_refused_with_the_known_ones(run, sensor_table: None) -> None:
    result = run("table", "show", "sensor_hour")
    assert result.code == 2
    assert "there is no table 'sensor_hour'; known names: sensor_minute" in result.err


def test_logs_of_an_unknown_program_are_refused_with_the_known_ones(run, home: Path) -> None:
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "host.log").write_text("one\ntwo\nthree\n", "utf-8")
    assert run("logs", "-n", "2").out.splitlines() == ["host       two", "host       three"]
    assert len(run("logs", "-n", "5").out.splitlines()) == 3
    assert run("logs", "-n", "0").out == ""
    assert run("logs", "-n", "-1").code == 2
    result = run("logs", "nonsense")
    assert (result.code, "known names: host" in result.err) == (2, True)


def test_down_where_nothing_runs_does_nothing(run) -> None:
    assert run("down").code == 0


def test_several_streams_are_requested_together_or_not_at_all(run) -> None:
    refused = run("stream", "start", "sensor_minute", "nonsense", "--wait", "0")
    assert refused.code == 2
    assert json.loads(run("status", "--json").out)["streams"] == []
    assert run("stream", "start", "sensor_minute", "archive-sensors", "--wait", "0").code == 0
    listed = json.loads(run("status", "--json").out)["streams"]
    assert {item["stream"] for item in listed} == {"sensor_minute", "archive-sensors"}


def test_nan_and_infinity_are_text_in_json(run, home: Path) -> None:
    values = [1.5, float("nan"), float("inf"), float("-inf")]
    rows = {"n": [1, 2, 3, 4], "deviation": values, "several": [[item] for item in values]}
    write_deltalake(home / "warehouse" / "latest" / "sensor_minute", pa.table(rows))

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    rows_shown = json.loads(run("table", "show", "sensor_minute", "--json").out, parse_constant=refuse)
    texts = [1.5, "NaN", "Infinity", "-Infinity"]
    assert sorted((row["n"], row["deviation"]) for row in rows_shown) == list(enumerate(texts, 1))


def test_doctor_says_one_thing_of_each_part(run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = find_free_ports(1)
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", "s3://bucket/prefix")
    monkeypatch.setenv("PENSTOCK_WAREHOUSE_STORE__ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    checks = [item["check"] for item in json.loads(run("doctor", "--json").out)]
    assert sorted(checks) == sorted(set(checks))
    assert "warehouse" in checks
