"""Comparison of results with recomputed ones."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.quality.audit.comparability import (
    Sample,
)
from penstock.quality.audit.result_comparison import TableComparison, compare_results, latest_panes

COMPARISON = TableComparison("latest/minutes", ["device", "window_start"], ["mean", "n"])
AT = "window_start 2026-01-01 12:00:00.000"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROWS = [
    {"device": "a", "window_start": NOON, "mean": 0.1 + 0.2, "n": 3},
    {"device": None, "window_start": NOON, "mean": None, "n": 1},
    {"device": "b", "window_start": NOON, "mean": float("nan"), "n": 2},
    {"device": "c", "window_start": NOON, "mean": float("inf"), "n": 2},
]
SCHEMA = pa.schema([("device", pa.string()), ("window_start", pa.timestamp("us", tz="UTC")),
                    ("mean", pa.float64()), ("n", pa.int64())])  # fmt: skip
FULL_SAMPLE = Sample()


def build_rows(*changes: tuple[int, dict[str, object]]) -> pa.Table:
    row_dicts = [dict(row) for row in ROWS]
    for index, change in changes:
        row_dicts[index].update(change)
    return pa.Table.from_pylist(row_dicts, SCHEMA)


def find_differences(table: pa.Table, recomputed: pa.Table) -> list[str]:
    return [str(difference) for difference in compare_results(COMPARISON, table, recomputed)]


def test_rounding_nulls_and_nan_are_no_difference() -> None:
    assert find_differences(build_rows(), build_rows((0, {"mean": 0.3}))) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((0, {"mean": 0.3001}), f"device a, {AT}: mean is 0.3001; recomputed, it is"),
        ((1, {"mean": 0.0}), f"device None, {AT}: mean is 0.0; recomputed, it is None"),
        ((2, {"mean": 1.0}), f"device b, {AT}: mean is 1.0; recomputed, it is nan"),
        ((3, {"mean": 1.0}), f"device c, {AT}: mean is 1.0; recomputed, it is inf"),
        ((0, {"n": 4}), f"device a, {AT}: n is 4; recomputed, it is 3"),
    ],
)  # fmt: skip
def test_an_edited_value_is_found_with_its_row(change: tuple[int, dict[str, object]], message: str) -> None:
    (difference,) = find_differences(build_rows(change), build_rows())
    assert difference.startswith(f"latest/minutes, {message}")


def test_missing_unexpected_and_duplicate_rows_are_found() -> None:
    table = build_rows()
    (gone,) = find_differences(table.slice(1), table)
    (strange,) = find_differences(table, table.slice(1))
    assert gone.endswith("missing from the table")
    assert strange.endswith("in the table, but not in the recomputed results")
    assert "device b" in find_differences(pa.concat_tables([table, table.slice(2, 1)]), table)[0]
    assert "2 times" in find_differences(pa.concat_tables([table, table.slice(2, 1)]), table)[0]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["insert", "retract"]), st.integers(0, 9)), max_size=30
    )
)
def test_the_latest_panes_of_a_log_are_those_not_retracted(
    log: list[tuple[int, str, int]],
) -> None:
    expected: dict[int, int] = {}
    written = []
    for batch, (window, kind, value) in enumerate(log):
        if kind == "retract" and window not in expected:
            continue
        value = expected.pop(window) if kind == "retract" else value
        written.append({"w": window, "kind": kind, "v": value, "batch_id": batch})
        if kind == "insert":
            expected[window] = value
    schema = pa.schema(
        [("w", pa.int64()), ("kind", pa.string()), ("v", pa.int64()), ("batch_id", pa.int64())]
    )
    remaining = latest_panes(pa.Table.from_pylist(written, schema), ["w"]).to_pylist()
    assert {row["w"]: row["v"] for row in remaining} == expected
