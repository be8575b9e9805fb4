"""`penstock statistics` of tables."""

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


def write_windows(home: Path, records: list[int]) -> None:
    """Write one final window for each hour."""
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


def test_the_figures_of_every_interval_are_shown(run: Callable, home: Path) -> None:
    write_windows(home, [100] * HOURS)
    result = run("statistics", "latest/sensor_minute")
    assert result.code == 0
    lines = result.out.splitlines()
    figures = ["rows", "records", "keys", "null_temperature", "null_readings", "distinct_temperature"]
    assert lines[0].split() == ["from", *figures]
    assert lines[1].split() == ["1970-01-01", "00:00", "1", "100", "1", "0", "0", "1"]
    plots = Path(result.out.rpartition("plots: ")[2].strip())
    assert plots.parent == home / "quality" / "statistics" / "latest"
    assert plots.read_text("utf-8").count("<circle") == HOURS * len(figures)
    assert len(json.loads(run("statistics", "latest/sensor_minute", "--json").out)["windows"]) == HOURS


def test_distinct_values_of_an_unknown_column_are_refused(
    run: Callable, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, plan = load_table_suites()["latest/sensor_minute"]
    assert suite.statistics is not None
    invalid_suite = replace(suite, statistics=replace(suite.statistics, distinct=("device", "warmth")))
    monkeypatch.setattr(statistics, "load_table_suites", lambda: {suite.subject: (invalid_suite, plan)})
    result = run("statistics", "latest/sensor_minute")
    assert (result.code, "distinct has unknown columns: warmth" in result.err) == (2, True)
    assert "Columns of latest/sensor_minute: " in result.err


def test_a_sudden_share_of_late_records_exits_with_1(run: Callable, home: Path) -> None:
    write_windows(home, [100] * HOURS)
    last = pa.array([HOURS * HOUR * 1_000] * 25, pa.int64()).cast(pa.timestamp("us", "UTC"))
    write_deltalake(home / "warehouse/late/sensor_minute", pa.table({"window_end": last}))
    result = run("statistics", "latest/sensor_minute")
    assert result.code == 1
    assert "sudden change: share_missed is 0.2, usually 0 (20.0 deviations)" in result.out
    assert [line.split()[-1] for line in result.out.splitlines()[: HOURS + 1]] == [
        "share_missed", *["0"] * (HOURS - 1), "0.2"
    ]  # fmt: skip


def test_a_sudden_change_exits_with_1(run: Callable, home: Path) -> None:
    write_windows(home, [*[100] * HOURS, 3])
    result = run("statistics", "latest/sensor_minute")
    assert result.code == 1
    assert "sudden change: records is 3, usually 100 (19.4 deviations)" in result.out


@pytest.mark.parametrize(
    ("subject", "ledger"),
    [
        ("latest/sensor_minute", "ledger/sensor_minute"),
        ("latest/device_and_site", "ledger/device_and_site"),
        ("latest/site_minutes", "ledger/device_and_site.site_minutes"),
        ("latest/payments_by_country", "ledger/payments_parted.payments_by_country"),
        ("latest/click_through", "ledger/click_through"),
    ],
)
def test_fates_are_those_of_the_stage_of_the_table(
    run: Callable, home: Path, subject: str, ledger: str
) -> None:
    """Each stage that reads records has its own ledger."""
    for table, (read, late) in {"ledger/device_and_site": (9, 0), ledger: (20, 5)}.items():
        row = {
            **dict.fromkeys(LEDGER_SCHEMA.names, 0),
            "topic": "t",
            "read": read,
            "accepted": read - late,
            "late": late,
        }
        schema = pa.schema([*LEDGER_SCHEMA, pa.field("batch_clock", pa.timestamp("us", "UTC"))])
        rows = pa.Table.from_pylist([{**row, "batch_clock": 5_000_000}], schema)
        write_deltalake(home / "warehouse" / table, rows, mode="overwrite")
    document = json.loads(run("statistics", subject, "--json").out)
    (point,) = document["fates"]
    assert {name: point[name] for name in ("at_ms", "read", "share_late")} == {
        "at_ms": 0, "read": 20, "share_late": 0.25
    }  # fmt: skip


def test_a_table_without_a_suite_is_refused_with_a_suggestion(run: Callable) -> None:
    result = run("statistics", "latest/nothing")
    assert result.code == 2
    assert "there is no suite with statistics for 'latest/nothing'" in result.err
    assert "Did you mean 'latest/sensor_minute'?" in run("statistics", "latest/sensor_minut").err


def test_every_measured_table_has_the_required_columns() -> None:
    for subject, (suite, plan) in load_table_suites().items():
        if suite.statistics is not None:
            stage = find_stage(plan, suite)
            (sink,) = (sink for sink in stage.sinks if sink.path == subject)
            columns = {column.name for column in describe_result_columns(plan, stage, sink)}
            assert {"window_end", "records", *stage.key, *stage_value_columns(stage)} <= columns
