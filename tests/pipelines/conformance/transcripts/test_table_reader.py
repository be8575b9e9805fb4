"""What tables say is read back as it stands there, where Python's calendar has no word for it as well."""

import pyarrow as pa

from penstock.conformance.on_spark.table_reader import pane_from_row, to_instant, to_rows

YEAR_0, YEAR_10000 = -62_135_600_000_000, 253_402_300_800_000
TIME = pa.timestamp("us", tz="UTC")


def test_windows_that_reach_out_of_the_calendar_are_read() -> None:
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
    (found,) = [pane_from_row(each, ["key"], ["n"]) for each in to_rows(pa.table(row))]
    assert (found.start, found.end, found.clock) == (YEAR_0, YEAR_10000, 5)
    assert found.watermark == to_instant(None, found.watermark) == float("inf")
    assert found.values == (("n", 1),)
