"""A table's figures over time as a person meets them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.engine.batch.record_schemas import LEDGER_SCHEMA
from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.columns import stage_value_columns
from penstock.platform.control import open_control_store
from penstock.platform.lineage.result_columns import describe_result_columns
from penstock.platform.services import statistics
from penstock.platform.services.expectations import load_table_suites
from penstock.quality.expectations.table_checks import find_stage

HOUR = 3_600_000
HOURS = 12


def write(home: Path, records: list[int]) -> None:
    """A window an hour, all of them final."""
    count = len(records)
    ends = pa.array([(hour + 1) * HOUR * 1_000 for hour in range(count)], pa.int64()).cast(
        pa.timestamp("us", "UTC")
    )
    table = {"device": ["a"] * count, "temperature": [1.0] * count, "readings": records, "records": records}
    write_deltalake(
        home / "warehouse/latest/sensor_minute", pa.table({**table, "window_start": ends, "window_end": ends})
    )
    store = open_control_store(f"sqlite:///{home}/control.db")
    store.record_batch(BatchRecord("sensor_minute", 0, 1, "tick", 0, (count + 2) * HOUR, ()))
    store.close()


def test_the_figures_of_every_stretch_are_shown(run: Callable, home: Path) -> None:
    write(home, [100] * HOURS)
    answer = run("statistics", "latest/sensor_minute")
    assert answer.code == 0
    lines = answer.out.splitlines()
    figures = ["rows", "records", "keys", "null_temperature", "null_readings", "distinct_temperature"]
    assert lines[0].split() == ["from", *figures]
    assert lines[1].split() == ["1970-01-01", "00:00", "1", "100", "1", "0", "0", "1"]
    plots = Path(answer.out.rpartition("plots: ")[2].strip())
    assert plots.parent == home / "quality" / "statistics" / "latest"
    assert plots.read_text("utf-8").count("<circle") == HOURS * len(figures)
    assert len(json.loads(run("statistics", "latest/sensor_minute", "--json").out)["windows"]) == HOURS


def test_different_values_of_a_column_that_is_not_there_are_not_counted(
    run: Callable, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, plan = load_table_suites()["latest/sensor_minute"]
    assert suite.statistics is not None
    strange = replace(suite, statistics=replace(suite.statistics, distinct=("device", "warmth")))
    monkeypatch.setattr(statistics, "load_table_suites", lambda: {suite.subject: (strange, plan)})
    answer = run("statistics", "latest/sensor_minute")
    assert (answer.code, "distinct has unknown columns: warmth" in answer.err) == (2, True)
    assert "Columns of latest/sensor_minute: " in answer.err


def test_a_sudden_share_of_records_that_missed_their_windows_ends_with_one(run: Callable, home: Path) -> None:
    write(home, [100] * HOURS)
    last = pa.array([HOURS * HOUR * 1_000] * 25, pa.int64()).cast(pa.timestamp("us", "UTC"))
    write_deltalake(home / "warehouse/late/sensor_minute", pa.table({"window_end": last}))
    answer = run("statistics", "latest/sensor_minute")
    assert answer.code == 1
    assert "sudden change: share_missed is 0.2, usually 0 (20.0 deviations)" in answer.out
    assert [line.split()[-1] for line in answer.out.splitlines()[: HOURS + 1]] == [
        "share_missed", *["0"] * (HOURS - 1), "0.2"
    ]  # fmt: skip


def test_a_sudden_change_ends_with_one(run: Callable, home: Path) -> None:
    write(home, [*[100] * HOURS, 3])
    answer = run("statistics", "latest/sensor_minute")
    assert answer.code == 1
    assert "sudden change: records is 3, usually 100 (19.4 deviations)" in answer.out


@pytest.mark.parametrize(
    ("about", "ledger"),
    [
        ("latest/sensor_minute", "ledger/sensor_minute"),
        ("latest/device_and_site", "ledger/device_and_site"),
        ("latest/site_minutes", "ledger/device_and_site.site_minutes"),
        ("latest/payments_by_country", "ledger/payments_parted.payments_by_country"),
        ("latest/click_through", "ledger/click_through"),
    ],
)
def test_the_fates_of_records_are_those_of_the_stage_that_a_table_is_made_by(
    run: Callable, home: Path, about: str, ledger: str
) -> None:
    """A pipeline of several stages has a ledger for each that reads records, and each takes and drops others."""
    for place, (read, late) in {"ledger/device_and_site": (9, 0), ledger: (20, 5)}.items():
        row = {
            **dict.fromkeys(LEDGER_SCHEMA.names, 0),
            "topic": "t",
            "read": read,
            "folded": read - late,
            "late": late,
        }
        schema = pa.schema([*LEDGER_SCHEMA, pa.field("batch_clock", pa.timestamp("us", "UTC"))])
        rows = pa.Table.from_pylist([{**row, "batch_clock": 5_000_000}], schema)
        write_deltalake(home / "warehouse" / place, rows, mode="overwrite")
    told = json.loads(run("statistics", about, "--json").out)
    (point,) = told["fates"]
    assert {name: point[name] for name in ("at_ms", "read", "share_late")} == {
        "at_ms": 0, "read": 20, "share_late": 0.25
    }  # fmt: skip


def test_a_table_of_which_no_suite_asks_is_refused_with_those_that_there_are(run: Callable) -> None:
    answer = run("statistics", "latest/nothing")
    assert answer.code == 2
    assert "there is no suite with statistics for 'latest/nothing'" in answer.err
    assert "Did you mean 'latest/sensor_minute'?" in run("statistics", "latest/sensor_minut").err


def test_every_table_that_is_measured_has_the_columns_that_figures_are_made_of() -> None:
    for about, (suite, plan) in load_table_suites().items():
        if suite.statistics is not None:
            stage = find_stage(plan, suite)
            (sink,) = (sink for sink in stage.sinks if sink.path == about)
            there = {column.name for column in describe_result_columns(plan, stage, sink)}
            assert {"window_end", "records", *stage.key, *stage_value_columns(stage)} <= there
