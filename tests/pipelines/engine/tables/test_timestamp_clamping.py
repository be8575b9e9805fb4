"""Times beyond Python's calendar are clamped to its limits, and others are unchanged."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from penstock.engine.tables.timestamp_clamping import clamp_timestamps

TIMESTAMP_TYPE = pa.timestamp("us", tz="UTC")
MAX_MICROSECONDS = 253_402_300_799_999_999


def make_rows(*microseconds: int | None) -> pa.Table:
    return pa.table({"n": list(range(len(microseconds))), "at": pa.array(microseconds, TIMESTAMP_TYPE)})


def test_times_beyond_the_calendar_are_clamped() -> None:
    rows = make_rows(None, 0, MAX_MICROSECONDS, MAX_MICROSECONDS + 1, -62_135_596_800_000_001, 2**62)
    with pytest.raises((OverflowError, ValueError)):
        rows.to_pylist()
    earliest, latest = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
    expected = [None, datetime(1970, 1, 1, tzinfo=UTC), latest, latest, earliest, latest]
    assert clamp_timestamps(rows).to_pylist() == [{"n": n, "at": at} for n, at in enumerate(expected)]


def test_times_without_a_zone_stay_without() -> None:
    rows = pa.table({"at": pa.array([0, MAX_MICROSECONDS + 1], pa.timestamp("us"))})
    assert clamp_timestamps(rows).schema == rows.schema
    assert [str(row["at"]) for row in clamp_timestamps(rows).to_pylist()] == [
        "1970-01-01 00:00:00",
        "9999-12-31 23:59:59.999999",
    ]
