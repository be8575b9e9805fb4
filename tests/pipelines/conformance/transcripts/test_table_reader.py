"""Panes are read from tables, also with times that Python's `datetime` cannot represent."""

import pyarrow as pa

from penstock.conformance.on_spark.table_reader import pane_from_row, to_instant, to_rows

YEAR_0, YEAR_10000 = -62_135_600_000_000, 253_402_300_800_000
TIME = pa.timestamp("us", tz="UTC")


def test_windows_beyond_the_calendar_are_read() -> None:
    times = {"window_start": YEAR_0, "window_end": YEAR_10000, "batch_clock": 5, "watermark": None}
    row = {
        **{name: pa.array([time], pa.timestamp("ms", tz="UTC")).cast(TIME) for name, time in times.items()},
        "key": ["k"],
        "n": [1],
        "pane": [0],
        "timing": ["early"],
        "on_time_index": [-1],
        "final": [False],
        "kind": ["insert"],
        "records": [1],
        "batch_id": [0],
    }
    (pane,) = [pane_from_row(each, ["key"], ["n"]) for each in to_rows(pa.table(row))]
    assert (pane.start, pane.end, pane.clock) == (YEAR_0, YEAR_10000, 5)
    assert pane.watermark == to_instant(None, pane.watermark) == float("inf")
    assert pane.values == (("n", 1),)
