"""Tables of windows for tests of statistics."""

import pyarrow as pa

HOUR = 3_600_000


UTC = pa.timestamp("us", tz="UTC")


def build_windows(*rows: tuple[int | None, str | None, float | None, int]) -> pa.Table:
    ends = pa.array([None if end is None else end * 1_000 for end, *_ in rows], pa.int64()).cast(UTC)
    columns = {
        "device": pa.array([row[1] for row in rows], pa.string()),
        "mean": pa.array([row[2] for row in rows], pa.float64()),
        "records": pa.array([row[3] for row in rows], pa.int64()),
        "window_end": ends,
    }
    return pa.table(columns)
