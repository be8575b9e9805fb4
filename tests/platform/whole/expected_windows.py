"""The expected windows of sensor_minute, computed from the topic in another way than by the engine."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from tests.patience import PATIENCE_S
from tests.platform.whole.scratch_stack import ScratchStack

Windows = dict[tuple[str, int], tuple[int, float | None]]
"""By device and window start (ms): the number of readings and their mean temperature."""


SQL = """
    SELECT device, minute, count(*) AS readings, avg(temperature) AS temperature FROM records GROUP BY ALL
"""


@dataclass(frozen=True)
class Difference:
    """A window that differs from the expected one."""

    window: tuple[str, int]
    expected: tuple[int, float | None] | None
    found: tuple[int, float | None] | None


def parse_readings(values: Iterable[bytes]) -> pa.Table:
    """Parse readings, and add the minute of each."""
    read = [json.loads(value) for value in values]
    return pa.table(
        {
            **{name: [record[name] for record in read] for name in ("device", "site")},
            "minute": [record["at"] // 60_000 * 60_000 for record in read],
            "temperature": pa.array([record.get("temperature") for record in read], pa.float64()),
        }
    )


def compute_windows(values: Iterable[bytes]) -> Windows:
    """Compute the windows of the given records."""
    records = parse_readings(values)
    found = duckdb.connect().sql(SQL).fetchall() if records.num_rows else []
    return {(device, minute): (readings, mean) for device, minute, readings, mean in found}


def read_windows(latest: pa.Table) -> Windows:
    """Return the windows of the latest table; fail if a window has two rows."""
    rows = latest.select(["device", "window_start", "readings", "temperature"]).to_pylist()
    found = {
        (row["device"], int(row["window_start"].timestamp() * 1000)): (row["readings"], row["temperature"])
        for row in rows
    }
    assert len(found) == len(rows), "a window has two rows"
    return found


def find_differences(expected: Windows, found: Windows) -> list[Difference]:
    """List the windows that differ; means may differ by rounding."""
    return [
        Difference(window, expected.get(window), found.get(window))
        for window in sorted(expected.keys() | found.keys())
        if not _same(expected.get(window), found.get(window))
    ]


def wait_for_windows(stack: ScratchStack) -> Windows:
    """Wait until the table has the windows of all records of the topic, and return them."""
    expected = compute_windows(stack.values())
    deadline = time.monotonic() + PATIENCE_S
    while found := find_differences(expected, read_windows(stack.table("latest", "sensor_minute"))):
        assert time.monotonic() < deadline, f"{len(found)} of {len(expected)} windows differ: {found[:5]}"
        time.sleep(0.5)
    return expected


def _same(one: tuple[int, float | None] | None, other: tuple[int, float | None] | None) -> bool:
    if one is None or other is None or one[0] != other[0]:
        return False
    if one[1] is None or other[1] is None:
        return one[1] is other[1]
    return abs(one[1] - other[1]) < 1e-9
