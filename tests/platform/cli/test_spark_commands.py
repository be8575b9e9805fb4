"""Commands that start Spark."""

import json
from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable
from tests.platform.cli.test_pipelines import build_case
from tests.quality.expectations.test_table_checks import MINUTE, NOON, write_minutes

from penstock.engine.host.control import BatchRecord
from penstock.pipelines import catalog
from penstock.pipelines.catalog import load_demo
from penstock.platform.control import open_control_store
from penstock.platform.demo.timed_records import build_timed_records

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def jars(
    home: Path, jar_directory: Path, spark_jar_paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_JARS", str(jar_directory))


def test_transcript_cases_run_on_the_engine(run, tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [build_case("right", [7]), build_case("wrong", [8])]}), "utf-8")
    result = run("transcript", "run", str(file))
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [(line["id"], line["ok"]) for line in lines] == [("right", True), ("wrong", False)]
    assert result.code == 1


def test_a_pipeline_runs_over_files_into_tables_of_the_run(run, home: Path, tmp_path: Path) -> None:
    readings = [
        {
            "id": f"r{number}",
            "device": "a",
            "site": "s",
            "at": 60_000 * (number // 3),
            "temperature": float(number),
        }
        for number in range(9)
    ]
    lines = "".join(f"{json.dumps(reading)}\n" for reading in readings)
    (tmp_path / "readings.json").write_text(f"{lines}broken\n", encoding="utf-8")
    arguments = (
        "run",
        "sensor_minute",
        "--from",
        f"json:{tmp_path / 'readings.json'}",
        "--name",
        "once",
        "--json",
    )
    result = run(*arguments)
    assert result.code == 1, result.err  # one record is invalid
    document = json.loads(result.out)
    assert document["accounts"] == {
        "read": 10, "accepted": 9, "late": 0, "quarantined": 1, "duplicate": 0, "filtered": 0
    }  # fmt: skip
    assert Path(document["tables"]) == home / "warehouse" / "runs" / "sensor_minute" / "once"
    latest = DeltaTable(Path(document["tables"]) / "latest" / "sensor_minute").to_pyarrow_table()
    rows = sorted(
        (row["window_start"].timestamp(), row["temperature"], row["readings"]) for row in latest.to_pylist()
    )
    assert rows == [(0.0, 1.0, 3), (60.0, 4.0, 3), (120.0, 7.0, 3)]
    assert json.loads(run(*arguments).out) == document


def test_an_invalid_source_is_refused_before_spark_starts(run) -> None:
    result = run("run", "sensor_minute", "--from", "papyrus")
    assert result.code == 2
    assert "is not of the form FORMAT:PATH" in result.err


def test_tables_with_final_windows_are_checked(run, home: Path) -> None:
    lateness = catalog.load_plan("sensor_minute").only_stage.lateness
    write_minutes(home, [("a", 20.0, 3, 1), ("b", 99.0, 2, 2), ("c", -99.0, 1, 9)])
    store = open_control_store(f"sqlite:///{home}/control.db")
    store.record_batch(BatchRecord("sensor_minute", 0, 1, "tick", 0, NOON + 2 * MINUTE + lateness, ()))
    store.close()
    result = run("check", "latest/sensor_minute", "--json")
    (outcome,) = json.loads(result.out)["latest/sensor_minute"]
    failed = {
        expectation["name"]: expectation["unexpected"]
        for expectation in outcome["results"]
        if not expectation["passed"]
    }
    assert (result.code, failed) == (1, {"temperature_values_to_be_between": 1})
    second = run("check", "latest/sensor_minute")
    assert second.code == 1
    document = [line.split()[2:] for line in second.out.splitlines()]
    assert ["temperature_values_to_be_between", "not", "met", "1", "of", "2", "rows"] in document
    assert "1 of 2 rows" in (home / "quality" / "docs" / "index.html").read_text("utf-8")


def test_a_table_without_a_suite_is_refused_with_a_suggestion(run) -> None:
    result = run("check", "latest/sensor_minutes")
    assert result.code == 2
    assert "there is no table 'latest/sensor_minutes'. Did you mean 'latest/sensor_minute'?" in result.err


def test_a_pipeline_is_shown_from_nothing_to_a_picture(run, home: Path, tmp_path: Path) -> None:
    result = run("demo", "running_avg", "--out", str(tmp_path / "shown"), "--json")
    assert result.code == 0, result.err
    (document,) = json.loads(result.out)
    assert (tmp_path / "shown" / "running_avg.svg").read_text("utf-8").startswith("<svg")
    assert "running_avg.svg" in Path(document["page"]).read_text("utf-8")
    sent = build_timed_records("avg", load_demo("running_avg"))
    values: dict[str, list[float]] = {}
    for record in sent:
        number = msgspec.to_builtins(record.record)
        values.setdefault(number["key"], []).append(number["value"])
    latest = DeltaTable(Path(document["warehouse"]) / "latest" / "running_avg").to_pyarrow_table().to_pylist()
    assert {row["key"]: row["values"] for row in latest} == {
        key: len(numbers) for key, numbers in values.items()
    }
    for row in latest:
        assert row["mean"] == pytest.approx(sum(values[row["key"]]) / len(values[row["key"]]))
