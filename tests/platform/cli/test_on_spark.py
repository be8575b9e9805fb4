"""Commands that start Spark, as a person runs them."""

import json
from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable
from tests.platform.cli.test_pipelines import case
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


def test_cases_are_run_by_the_engine_of_live_streams(run, tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [case("right", [7]), case("wrong", [8])]}), "utf-8")
    answer = run("transcript", "run", str(file))
    lines = [json.loads(line) for line in answer.out.splitlines()]
    assert [(line["id"], line["ok"]) for line in lines] == [("right", True), ("wrong", False)]
    assert answer.code == 1


def test_a_pipeline_is_run_over_files_into_tables_of_the_runs_own(run, home: Path, tmp_path: Path) -> None:
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
    asked = (
        "run",
        "sensor_minute",
        "--from",
        f"json:{tmp_path / 'readings.json'}",
        "--name",
        "once",
        "--json",
    )
    answer = run(*asked)
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert told["accounts"] == {
        "read": 10, "folded": 9, "late": 0, "quarantined": 1, "duplicate": 0, "filtered": 0
    }  # fmt: skip
    assert Path(told["tables"]) == home / "warehouse" / "runs" / "sensor_minute" / "once"
    latest = DeltaTable(Path(told["tables"]) / "latest" / "sensor_minute").to_pyarrow_table()
    found = sorted(
        (row["window_start"].timestamp(), row["temperature"], row["readings"]) for row in latest.to_pylist()
    )
    assert found == [(0.0, 1.0, 3), (60.0, 4.0, 3), (120.0, 7.0, 3)]
    assert json.loads(run(*asked).out) == told


def test_a_place_that_is_none_is_refused_before_spark_starts(run) -> None:
    answer = run("run", "sensor_minute", "--from", "papyrus")
    assert answer.code == 2
    assert "is not of the form FORMAT:PATH" in answer.err


def test_tables_are_checked_once_their_windows_are_final(run, home: Path) -> None:
    lateness = catalog.load_plan("sensor_minute").only_stage.lateness
    write_minutes(home, [("a", 20.0, 3, 1), ("b", 99.0, 2, 2), ("c", -99.0, 1, 9)])
    store = open_control_store(f"sqlite:///{home}/control.db")
    store.record_batch(BatchRecord("sensor_minute", 0, 1, "tick", 0, NOON + 2 * MINUTE + lateness, ()))
    store.close()
    answer = run("check", "latest/sensor_minute", "--json")
    (outcome,) = json.loads(answer.out)["latest/sensor_minute"]
    wrong = {one["name"]: one["unexpected"] for one in outcome["results"] if not one["passed"]}
    assert (answer.code, wrong) == (1, {"temperature_values_to_be_between": 1})
    again = run("check", "latest/sensor_minute")
    assert again.code == 1
    told = [line.split()[2:] for line in again.out.splitlines()]
    assert ["temperature_values_to_be_between", "not", "met", "1", "of", "2", "rows"] in told
    assert "1 of 2 rows" in (home / "quality" / "docs" / "index.html").read_text("utf-8")


def test_a_table_without_a_suite_is_refused_with_the_nearest_that_has_one(run) -> None:
    answer = run("check", "latest/nothing")
    assert answer.code == 2
    told = "there is no expectation suite 'latest/nothing'. Did you mean 'latest/trending'?"
    assert told in answer.err


def test_a_pipeline_is_shown_from_nothing_to_a_picture(run, home: Path, tmp_path: Path) -> None:
    answer = run("demo", "running_avg", "--out", str(tmp_path / "shown"), "--json")
    assert answer.code == 0, answer.err
    (told,) = json.loads(answer.out)
    assert (tmp_path / "shown" / "running_avg.svg").read_text("utf-8").startswith("<svg")
    assert "running_avg.svg" in Path(told["page"]).read_text("utf-8")
    sent = build_timed_records("avg", load_demo("running_avg"))
    values: dict[str, list[float]] = {}
    for each in sent:
        number = msgspec.to_builtins(each.record)
        values.setdefault(number["key"], []).append(number["value"])
    latest = DeltaTable(Path(told["warehouse"]) / "latest" / "running_avg").to_pyarrow_table().to_pylist()
    assert {row["key"]: row["values"] for row in latest} == {key: len(held) for key, held in values.items()}
    for row in latest:
        assert row["mean"] == pytest.approx(sum(values[row["key"]]) / len(values[row["key"]]))
