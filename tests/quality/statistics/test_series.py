"""Figures over time, compared with queries in DuckDB."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quality.statistics.window_tables import HOUR, UTC, build_windows

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.engine.batch.record_schemas import LEDGER_SCHEMA
from penstock.quality.errors import SuiteError
from penstock.quality.expectations.suite import load_suite
from penstock.quality.statistics import series as series_module
from penstock.quality.statistics.recent_points import (
    add_missed_share,
)
from penstock.quality.statistics.series import StatisticsPoint, compute_fate_points, compute_window_points


def test_an_interval_counts_windows_keys_records_and_nulls() -> None:
    table = build_windows(
        (HOUR, "a", 1.0, 3),
        (HOUR - 60_000, "a", None, 2),
        (HOUR, None, 2.0, 1),
        (HOUR + 1, "b", None, 5),
        (None, "c", 1.0, 9),
    )
    points = compute_window_points(table, ["device"], ["mean"], HOUR, 2 * HOUR)
    assert points == [
        StatisticsPoint(0, {"rows": 3, "records": 6, "keys": 2, "null_mean": 1 / 3}),
        StatisticsPoint(HOUR, {"rows": 1, "records": 5, "keys": 1, "null_mean": 1}),
    ]
    assert compute_window_points(table, ["device"], ["mean"], HOUR, 2 * HOUR - 1) == points[:1]
    assert compute_window_points(table, ["device"], ["mean"], HOUR, None) == []


def test_fates_are_shares_of_the_records_read() -> None:
    rows = [
        {
            **dict.fromkeys(LEDGER_SCHEMA.names, 0),
            "topic": "t",
            "read": 10,
            "accepted": 8,
            "late": 2,
            "batch_clock": 5_000,
        },
        {
            **dict.fromkeys(LEDGER_SCHEMA.names, 0),
            "topic": "t",
            "read": 10,
            "quarantined": 5,
            "batch_clock": 6_000,
        },
        {**dict.fromkeys(LEDGER_SCHEMA.names, 0), "topic": "t", "batch_clock": HOUR * 1_000},
    ]
    ledger = pa.Table.from_pylist(rows, pa.schema([*LEDGER_SCHEMA, pa.field("batch_clock", UTC)]))
    first, second = compute_fate_points(ledger, HOUR, 2 * HOUR)
    assert first.figures == {
        "read": 20, "share_late": 0.1, "share_quarantined": 0.25, "share_duplicate": 0, "share_filtered": 0
    }  # fmt: skip
    assert second.figures["read"] == second.figures["share_late"] == 0
    assert compute_fate_points(ledger, HOUR, HOUR) == [first]


some_windows = st.tuples(
    st.none() | st.integers(1, 6 * HOUR),
    st.none() | st.sampled_from("abc"),
    st.none() | st.floats(-5, 5),
    st.integers(1, 9),
)


@settings(deadline=None)
@given(st.lists(some_windows, max_size=30), st.integers(0, 7 * HOUR))
def test_window_figures_equal_those_of_a_query(
    rows: list[tuple[int | None, str | None, float | None, int]], final: int
) -> None:
    table = build_windows(*rows)
    queried = (
        duckdb.connect()
        .sql(
            f"""
        SELECT (epoch_ms(window_end) - 1) // {HOUR} * {HOUR} AS begins, count(*), sum(records),
               count(DISTINCT device) + max(CAST(device IS NULL AS INT)), avg(CAST(mean IS NULL AS INT)),
               count(DISTINCT mean), count(DISTINCT device)
        FROM "table" WHERE window_end IS NOT NULL GROUP BY begins HAVING begins + {HOUR} <= {final} ORDER BY begins
        """
        )
        .fetchall()
    )
    names = ("rows", "records", "keys", "null_mean", "distinct_mean", "distinct_device")
    expected = [
        StatisticsPoint(at, dict(zip(names, map(float, figures), strict=True))) for at, *figures in queried
    ]
    points = compute_window_points(table, ["device"], ["mean"], HOUR, final, ["mean", "device"])
    assert [round_figures(point) for point in points] == [round_figures(point) for point in expected]


def test_distinct_values_of_a_large_table_are_estimated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        (HOUR * (1 + n % 2), f"d{n % 700}", float(n % 4_000) if n % 3 else None, 1) for n in range(12_000)
    ]
    table = build_windows(*rows)
    exact = compute_window_points(table, [], [], HOUR, 2 * HOUR, ["device", "mean"])
    monkeypatch.setattr(series_module, "MIN_ROWS_FOR_SKETCH", len(rows))
    estimated = compute_window_points(table, [], [], HOUR, 2 * HOUR, ["device", "mean"])
    queried = (
        duckdb.connect().sql('SELECT count(DISTINCT device) FROM "table" GROUP BY window_end').fetchall()
    )
    assert [point.figures["distinct_device"] for point in exact] == [float(n) for (n,) in queried]
    for one, other in zip(estimated, exact, strict=True):
        for name in ("distinct_device", "distinct_mean"):
            assert one.figures[name] == pytest.approx(other.figures[name], rel=0.05)
    assert estimated != exact


@settings(deadline=None)
@given(
    st.lists(some_windows, min_size=1, max_size=20),
    st.lists(st.integers(1, 6 * HOUR), min_size=1, max_size=20),
)
def test_the_missed_share_equals_that_of_a_query(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int | None, str | None, float | None, int]],
    late: list[int],
) -> None:
    table, missed = build_windows(*rows), build_windows(*((end, "a", 1.0, 1) for end in late))
    path = tmp_path_factory.mktemp("late") / "minutes"
    write_deltalake(path, missed)
    points = compute_window_points(table, ["device"], ["mean"], HOUR, 7 * HOUR)
    stretch = f"(epoch_ms(window_end) - 1) // {HOUR} * {HOUR}"
    queried = (
        duckdb.connect()
        .sql(
            f"""
        WITH gone AS (SELECT {stretch} AS begins, count(*) AS n FROM missed GROUP BY 1),
             came AS (SELECT {stretch} AS begins, sum(records) AS n FROM "table" GROUP BY 1)
        SELECT begins, coalesce(gone.n, 0) / (came.n + coalesce(gone.n, 0))
        FROM came LEFT JOIN gone USING (begins) WHERE begins IS NOT NULL ORDER BY begins
        """
        )
        .fetchall()
    )
    with_share = add_missed_share(points, path, HOUR)
    assert [(point.at_ms, round(point.figures["share_missed"], 12)) for point in with_share] == [
        (begins, round(share, 12)) for begins, share in queried
    ]
    assert [{**point.figures, "share_missed": None} for point in with_share] == [
        {**point.figures, "share_missed": None} for point in points
    ]
    assert add_missed_share(points, path.with_name("none"), HOUR) == points


some_batches = st.tuples(st.integers(0, 3 * HOUR), *(st.integers(0, 9) for _ in RECORD_FATES))


@settings(deadline=None)
@given(st.lists(some_batches, max_size=20), st.integers(0, 4 * HOUR))
def test_fate_figures_equal_those_of_a_query(batches: list[tuple[int, ...]], until: int) -> None:
    nothing = {**dict.fromkeys(LEDGER_SCHEMA.names, 0), "topic": "t"}
    rows = [
        {
            **nothing,
            **dict(zip(RECORD_FATES, fates, strict=True)),
            "read": sum(fates),
            "batch_clock": clock * 1_000,
        }
        for clock, *fates in batches
    ]
    ledger = pa.Table.from_pylist(rows, pa.schema([*LEDGER_SCHEMA, pa.field("batch_clock", UTC)]))
    shares = ", ".join(f"coalesce(sum({fate}) / nullif(sum(read), 0), 0)" for fate in RECORD_FATES[1:])
    queried = (
        duckdb.connect()
        .sql(
            f"""
        SELECT epoch_ms(batch_clock) // {HOUR} * {HOUR} AS begins, sum(read), {shares}
        FROM ledger GROUP BY begins HAVING begins + {HOUR} <= {until} ORDER BY begins
        """
        )
        .fetchall()
    )
    names = ("read", *(f"share_{fate}" for fate in RECORD_FATES[1:]))
    expected = [
        StatisticsPoint(at, dict(zip(names, map(float, figures), strict=True))) for at, *figures in queried
    ]
    assert [round_figures(point) for point in compute_fate_points(ledger, HOUR, until)] == [
        round_figures(point) for point in expected
    ]


def round_figures(point: StatisticsPoint) -> tuple[int, dict[str, float]]:
    """Round the figures, as both sides divide in another order."""
    return point.at_ms, {name: round(value, 12) for name, value in point.figures.items()}


@pytest.mark.parametrize(
    "text",
    [
        "{every: 1 hour}",
        "{every: soon, sensitivity: 5}",
        "{every: 1 hour, sensitivity: 0}",
        "{every: 1 hour, sensitivity: 5, distinct: device}",
        "{every: 1 hour, sensitivity: 5, different: [device]}",
    ],
)
def test_invalid_statistics_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "latest" / "minutes.yaml"
    path.parent.mkdir()
    path.write_text(f"expectations: [{{type: expect_x}}]\nstatistics: {text}\n", "utf-8")
    with pytest.raises(SuiteError, match="statistics: are"):
        load_suite("latest/minutes", tmp_path)
