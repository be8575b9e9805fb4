"""Sessions that a live stream splits and a recomputation does not."""

import pyarrow as pa

from penstock.quality.audit.split_sessions import exclude_split_sessions, find_split_sessions


def build_windows(*bounds: tuple[int, int]) -> pa.Table:
    kind = pa.timestamp("ms", tz="UTC")
    columns = [pa.array([pair[at] for pair in bounds], pa.int64()).cast(kind) for at in (0, 1)]
    return pa.table(columns, names=["window_start", "window_end"])


def build_sessions(*build_rows: tuple[str | None, int, int]) -> pa.Table:
    table = build_windows(*((start, end) for _, start, end in build_rows))
    return table.append_column("device", pa.array([device for device, *_ in build_rows], pa.string()))


def test_split_sessions_are_excluded_on_both_sides() -> None:
    live = build_sessions(
        ("a", 0, 10), ("a", 5, 15), ("a", 30, 40), ("b", 0, 10), ("b", 11, 20), (None, 0, 5), (None, 5, 9)
    )
    split = find_split_sessions(live, ["device"])
    assert sorted(split, key=repr) == [(("a",), 0, 15), ((None,), 0, 9)]
    remaining = exclude_split_sessions(live, ["device"], split).select(["device"]).to_pylist()
    assert [row["device"] for row in remaining] == ["a", "b", "b"]
    recomputed = build_sessions(("a", 0, 15), ("a", 30, 40), ("b", 0, 10), ("b", 11, 20), (None, 0, 9))
    assert [row["device"] for row in exclude_split_sessions(recomputed, ["device"], split).to_pylist()] == [
        "a",
        "b",
        "b",
    ]
    assert find_split_sessions(build_sessions(("a", 0, 10), ("a", 11, 20)), ["device"]) == []
