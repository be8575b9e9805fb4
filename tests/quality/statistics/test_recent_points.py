"""The newest points of a table, read from its newest files."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quality.statistics.window_tables import HOUR, build_windows

from penstock.quality.statistics.recent_points import (
    RecentIntervals,
    read_last_points,
)
from penstock.quality.statistics.series import StatisticsPoint, compute_window_points


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(1, 40 * HOUR), max_size=6), max_size=6), st.integers(1, 5))
def test_the_last_points_equal_those_of_the_whole_table(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], count: int
) -> None:
    path = tmp_path_factory.mktemp("table") / "minutes"
    tables = [build_windows(*((end, "a", 1.0, 1) for end in ends)) for ends in files if ends]
    for table in tables:
        write_deltalake(path, table, mode="append")

    def compute_points(rows: pa.Table) -> list[StatisticsPoint]:
        return compute_window_points(rows, ["device"], ["mean"], HOUR, 40 * HOUR)

    points = read_last_points(path, "window_end", RecentIntervals(HOUR, count, 40 * HOUR), compute_points)
    whole = compute_points(pa.concat_tables(tables)) if tables else []
    assert points == whole[len(whole) - len(points) :]
    assert len(points) >= min(count, len(whole))


def test_old_files_are_not_read(tmp_path: Path) -> None:
    for hour in (1, 500, 501, 502):
        write_deltalake(tmp_path / "minutes", build_windows((hour * HOUR, "a", 1.0, hour)), mode="append")
    table = DeltaTable(tmp_path / "minutes")
    oldest = min(table.file_uris(), key=lambda uri: Path(uri.removeprefix("file://")).stat().st_mtime_ns)
    Path(oldest.removeprefix("file://")).unlink()
    points = read_last_points(
        tmp_path / "minutes",
        "window_end",
        RecentIntervals(HOUR, 3, 502 * HOUR),
        lambda rows: compute_window_points(rows, [], [], HOUR, 502 * HOUR),
    )
    assert [point.figures["records"] for point in points] == [500, 501, 502]
