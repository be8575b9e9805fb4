"""What sensor_minute should hold, computed from the topic's own bytes in another way than the engine's."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from tests.platform.whole.stack import ScratchStack

Windows = dict[tuple[str, int], tuple[int, float | None]]
"""By device and window start (ms): how many readings, and their mean temperature."""

SETTLING_SECONDS = 60.0

SQL = """
    SELECT device, minute, count(*) AS readings, avg(temperature) AS temperature FROM records GROUP BY ALL
"""


@dataclass(frozen=True)
class Difference:
    """A window that is not as it should be."""

    window: tuple[str, int]
    expected: tuple[int, float | None] | None
    found: tuple[int, float | None] | None


def records_of(values: Iterable[bytes]) -> pa.Table:
    """Readings, each with the minute that it belongs to."""
    read = [json.loads(value) for value in values]
    return pa.table(
        {
            **{name: [record[name] for record in read] for name in ("device", "site")},
            "minute": [record["at"] // 60_000 * 60_000 for record in read],
            "temperature": pa.array([record.get("temperature") for record in read], pa.float64()),
        }
    )


def windows_of_records(values: Iterable[bytes]) -> Windows:
    """Every window that these records make."""
    records = records_of(values)
    found = duckdb.connect().sql(SQL).fetchall() if records.num_rows else []
    return {(device, minute): (readings, mean) for device, minute, readings, mean in found}


def windows_of_table(latest: pa.Table) -> Windows:
    """Every window of the table of newest values; the test fails where one has two rows."""
    rows = latest.select(["device", "window_start", "readings", "temperature"]).to_pylist()
    found = {
        (row["device"], int(row["window_start"].timestamp() * 1000)): (row["readings"], row["temperature"])
        for row in rows
    }
    assert len(found) == len(rows), "a window has two rows"
    return found


def differences(expected: Windows, found: Windows) -> list[Difference]:
    """Every window in which the two differ; means may differ by the order in which they were added up."""
    return [
        Difference(window, expected.get(window), found.get(window))
        for window in sorted(expected.keys() | found.keys())
        if not _same(expected.get(window), found.get(window))
    ]


def settled(stack: ScratchStack) -> Windows:
    """The windows of all records in the topic, once the table shows them; fails with how the two differ."""
    expected = windows_of_records(stack.values())
    deadline = time.monotonic() + SETTLING_SECONDS
    while found := differences(expected, windows_of_table(stack.table("latest", "sensor_minute"))):
        assert time.monotonic() < deadline, f"{len(found)} of {len(expected)} windows differ: {found[:5]}"
        time.sleep(0.5)
    return expected


def _same(one: tuple[int, float | None] | None, other: tuple[int, float | None] | None) -> bool:
    if one is None or other is None or one[0] != other[0]:
        return False
    if one[1] is None or other[1] is None:
        return one[1] is other[1]
    return abs(one[1] - other[1]) < 1e-9
