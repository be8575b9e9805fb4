"""Commands that start Spark, as a person runs them."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.platform.cli.test_pipelines import case

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
    assert "is not FORMAT:PATH" in answer.err
