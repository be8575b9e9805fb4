"""`penstock table show`: which rows, which columns, and how wide."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

NOW = datetime.now(UTC).replace(microsecond=0)
HEADER = {
    "pane": 3,
    "timing": "early",
    "on_time_index": -1,
    "final": False,
    "records": 7,
    "batch_id": 12,
    "batch_clock": NOW,
    "watermark": NOW,
}


def write_windows(home: Path, kind: str = "latest") -> None:
    """Three windows of two devices: of an hour ago, of now, and of tomorrow."""
    starts = [NOW - timedelta(hours=1), NOW - timedelta(seconds=30), NOW + timedelta(days=1)]
    rows = [
        {"device": device, "temperature": 20.0 + n, "window_start": start, **HEADER}
        for n, start in enumerate(starts)
        for device in ("b", "a")
    ]
    write_deltalake(home / "warehouse" / kind / "sensor_minute", pa.Table.from_pylist(rows))


@pytest.fixture
def windows(home: Path) -> None:
    write_windows(home)


def read_rows(run, *options: str) -> list[tuple[str, float]]:
    rows = json.loads(run("table", "show", "sensor_minute", "--json", *options).out)
    return [(row["device"], row["temperature"]) for row in rows]


def test_a_window_of_tomorrow_is_not_on_top_unless_asked_for(run, windows: None) -> None:
    now_first = [("a", 21.0), ("b", 21.0), ("a", 20.0), ("b", 20.0)]
    tomorrow = [("a", 22.0), ("b", 22.0)]
    assert read_rows(run) == [*now_first, *tomorrow]
    assert read_rows(run, "--future-first") == [*tomorrow, *now_first]
    assert read_rows(run, "--limit", "1") == [("a", 21.0)]


def test_internal_columns_are_left_out_of_the_table_and_not_of_json(run, windows: None) -> None:
    def read_header(*options: str) -> list[str]:
        return run("table", "show", "sensor_minute", *options).out.splitlines()[0].split()

    shown = ["device", "temperature", "window_start", "timing", "final"]
    everything = ["device", "temperature", "window_start", *HEADER]
    assert read_header() == shown
    assert read_header("--all-columns") == everything
    assert read_header("--columns", "watermark, device") == ["watermark", "device"]
    (row, *_) = json.loads(run("table", "show", "sensor_minute", "--json").out)
    assert list(row) == everything


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("temperature > 20 AND device = 'a'", [("a", 21.0), ("a", 22.0)]),
        (f"window_start < '{NOW - timedelta(minutes=30):%Y-%m-%d %H:%M:%S}'", [("a", 20.0), ("b", 20.0)]),
        ("batch_id = 13", []),
    ],
    ids=["values", "time", "no row"],
)
def test_rows_are_filtered_by_a_condition_in_sql(
    run, windows: None, condition: str, expected: list[tuple[str, float]]
) -> None:
    assert read_rows(run, "--where", condition) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--columns", "devise"), "there is no column 'devise'. Did you mean 'device'?"),
        (("--where", "temperatur > 20"), "there is no column 'temperatur'. Did you mean 'temperature'?"),
        (("--where", "temperature >"), "--where 'temperature >' is not a condition in SQL"),
        (("--where", "temperature + 1"), "--where 'temperature + 1' is not a condition in SQL"),
        (("--where", "device > 3"), "--where 'device > 3' is not a condition in SQL"),
    ],
)
def test_what_the_table_cannot_answer_is_named(run, windows: None, options: list[str], message: str) -> None:
    result = run("table", "show", "sensor_minute", *options)
    assert (result.code, message in result.err) == (2, True), result.err


@pytest.mark.parametrize(
    ("kind", "width", "header"),
    [
        ("latest", 100, "device temperature window_start timing final"),
        ("latest", 50, "device temperature window_start timing"),
        ("latest", 30, "device temperature"),
        ("panes", 100, "device temperature window_start timing final"),
    ],
)
def test_a_terminal_gets_the_columns_that_fit_and_the_names_of_others(
    run, home: Path, monkeypatch: pytest.MonkeyPatch, kind: str, width: int, header: str
) -> None:
    write_windows(home, kind)
    monkeypatch.setattr("penstock.platform.cli.live_view.terminal_width", lambda: width)
    lines = run("table", "show", "sensor_minute").out.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].split() == header.split()
    assert lines[-1].startswith("Left out: pane, on_time_index")
    assert lines[-2].startswith("No room for") == (width < 100)
