"""Figures over time against a count by hand, and what counts as a sudden change."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.batch.record_schemas import LEDGER_SCHEMA
from penstock.quality.errors import SuiteError
from penstock.quality.expectations.suite import load_suite
from penstock.quality.ledger_rows import FATES
from penstock.quality.statistics import series as series_of
from penstock.quality.statistics.change_detection import MIN_PREVIOUS_INTERVALS, detect_sudden_changes
from penstock.quality.statistics.recent_points import (
    RecentIntervals,
    add_missed_share,
    read_last_points,
)
from penstock.quality.statistics.series import StatisticsPoint, compute_fate_points, compute_window_points

HOUR = 3_600_000
UTC = pa.timestamp("us", tz="UTC")


def windows(*rows: tuple[int | None, str | None, float | None, int]) -> pa.Table:
    ends = pa.array([None if end is None else end * 1_000 for end, *_ in rows], pa.int64()).cast(UTC)
    columns = {
        "device": pa.array([row[1] for row in rows], pa.string()),
        "mean": pa.array([row[2] for row in rows], pa.float64()),
        "records": pa.array([row[3] for row in rows], pa.int64()),
        "window_end": ends,
    }
    return pa.table(columns)


def test_a_stretch_counts_its_windows_keys_records_and_nulls() -> None:
    table = windows(
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


def test_the_fates_of_records_are_shares_of_what_was_read() -> None:
    rows = [
        {
            **dict.fromkeys(LEDGER_SCHEMA.names, 0),
            "topic": "t",
            "read": 10,
            "folded": 8,
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
def test_figures_of_windows_are_those_of_a_query(
    rows: list[tuple[int | None, str | None, float | None, int]], final: int
) -> None:
    table = windows(*rows)
    asked = (
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
        StatisticsPoint(at, dict(zip(names, map(float, figures), strict=True))) for at, *figures in asked
    ]
    found = compute_window_points(table, ["device"], ["mean"], HOUR, final, ["mean", "device"])
    assert [told(point) for point in found] == [told(point) for point in expected]


def test_different_values_of_a_large_table_are_counted_by_a_sketch_that_is_near(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        (HOUR * (1 + n % 2), f"d{n % 700}", float(n % 4_000) if n % 3 else None, 1) for n in range(12_000)
    ]
    table = windows(*rows)
    exact = compute_window_points(table, [], [], HOUR, 2 * HOUR, ["device", "mean"])
    monkeypatch.setattr(series_of, "MIN_ROWS_FOR_SKETCH", len(rows))
    near = compute_window_points(table, [], [], HOUR, 2 * HOUR, ["device", "mean"])
    counted = (
        duckdb.connect().sql('SELECT count(DISTINCT device) FROM "table" GROUP BY window_end').fetchall()
    )
    assert [point.figures["distinct_device"] for point in exact] == [float(n) for (n,) in counted]
    for one, other in zip(near, exact, strict=True):
        for name in ("distinct_device", "distinct_mean"):
            assert one.figures[name] == pytest.approx(other.figures[name], rel=0.05)
    assert near != exact


def test_values_that_become_few_are_a_sudden_change() -> None:
    def hour(number: int, devices: int) -> list[tuple[int, str, float, int]]:
        return [((number + 1) * HOUR, f"d{n % devices}", 1.0, 1) for n in range(100)]

    usual = [row for number in range(MIN_PREVIOUS_INTERVALS) for row in hour(number, 50)]
    final = (MIN_PREVIOUS_INTERVALS + 1) * HOUR
    told_of = [
        detect_sudden_changes(
            compute_window_points(
                windows(*usual, *hour(MIN_PREVIOUS_INTERVALS, few)), [], [], HOUR, final, ["device"]
            ),
            5,
        )
        for few in (50, 20)
    ]
    assert [[change.figure for change in changes] for changes in told_of] == [[], ["distinct_device"]]


@settings(deadline=None)
@given(
    st.lists(some_windows, min_size=1, max_size=20),
    st.lists(st.integers(1, 6 * HOUR), min_size=1, max_size=20),
)
def test_the_share_that_missed_its_windows_is_that_of_a_query(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int | None, str | None, float | None, int]],
    late: list[int],
) -> None:
    table, missed = windows(*rows), windows(*((end, "a", 1.0, 1) for end in late))
    path = tmp_path_factory.mktemp("late") / "minutes"
    write_deltalake(path, missed)
    points = compute_window_points(table, ["device"], ["mean"], HOUR, 7 * HOUR)
    stretch = f"(epoch_ms(window_end) - 1) // {HOUR} * {HOUR}"
    asked = (
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
    found = add_missed_share(points, path, HOUR)
    assert [(point.at_ms, round(point.figures["share_missed"], 12)) for point in found] == [
        (begins, round(share, 12)) for begins, share in asked
    ]
    assert [{**point.figures, "share_missed": None} for point in found] == [
        {**point.figures, "share_missed": None} for point in points
    ]
    assert add_missed_share(points, path.with_name("none"), HOUR) == points


some_batches = st.tuples(st.integers(0, 3 * HOUR), *(st.integers(0, 9) for _ in FATES))


@settings(deadline=None)
@given(st.lists(some_batches, max_size=20), st.integers(0, 4 * HOUR))
def test_fates_of_records_are_those_of_a_query(batches: list[tuple[int, ...]], until: int) -> None:
    nothing = {**dict.fromkeys(LEDGER_SCHEMA.names, 0), "topic": "t"}
    rows = [
        {**nothing, **dict(zip(FATES, fates, strict=True)), "read": sum(fates), "batch_clock": clock * 1_000}
        for clock, *fates in batches
    ]
    ledger = pa.Table.from_pylist(rows, pa.schema([*LEDGER_SCHEMA, pa.field("batch_clock", UTC)]))
    shares = ", ".join(f"coalesce(sum({fate}) / nullif(sum(read), 0), 0)" for fate in FATES[1:])
    asked = (
        duckdb.connect()
        .sql(
            f"""
        SELECT epoch_ms(batch_clock) // {HOUR} * {HOUR} AS begins, sum(read), {shares}
        FROM ledger GROUP BY begins HAVING begins + {HOUR} <= {until} ORDER BY begins
        """
        )
        .fetchall()
    )
    names = ("read", *(f"share_{fate}" for fate in FATES[1:]))
    expected = [
        StatisticsPoint(at, dict(zip(names, map(float, figures), strict=True))) for at, *figures in asked
    ]
    assert [told(point) for point in compute_fate_points(ledger, HOUR, until)] == [
        told(point) for point in expected
    ]


def told(point: StatisticsPoint) -> tuple[int, dict[str, float]]:
    """A point whose figures can be compared: the two divide in another order."""
    return point.at_ms, {name: round(value, 12) for name, value in point.figures.items()}


def series(*values: float, name: str = "records") -> list[StatisticsPoint]:
    return [StatisticsPoint(number * HOUR, {name: value}) for number, value in enumerate(values)]


def test_a_change_is_sudden_by_what_was_usual_before() -> None:
    usual = [100.0, 104, 98, 101, 97, 103, 99, 102, 100]
    assert detect_sudden_changes(series(*usual, 112), 5) == []
    (change,) = detect_sudden_changes(series(*usual, 200), 5)
    assert str(change) == "records is 200, usually 100 (20.0 deviations)"
    assert detect_sudden_changes(series(*usual, 0), 5)[0].value == 0


def test_an_odd_stretch_does_not_make_the_next_one_usual() -> None:
    usual = [100.0] * MIN_PREVIOUS_INTERVALS + [900, 100, 100]
    assert [change.value for change in detect_sudden_changes(series(*usual, 900), 5)] == [900]


def test_shares_may_move_by_a_hundredth() -> None:
    calm = [0.0] * MIN_PREVIOUS_INTERVALS
    assert detect_sudden_changes(series(*calm, 0.03, name="share_late"), 5) == []
    assert detect_sudden_changes(series(*calm, 0.2, name="share_late"), 5)[0].figure == "share_late"


@given(st.lists(st.floats(0, 1e9), max_size=30), st.floats(1, 20))
def test_of_few_stretches_nothing_is_said_and_of_equal_ones_neither(
    values: list[float], sensitivity: float
) -> None:
    assert detect_sudden_changes(series(*values[:MIN_PREVIOUS_INTERVALS]), sensitivity) == []
    assert detect_sudden_changes(series(*[7.0] * len(values)), sensitivity) == []


@pytest.mark.parametrize(
    "told",
    [
        "{every: 1 hour}",
        "{every: soon, sensitivity: 5}",
        "{every: 1 hour, sensitivity: 0}",
        "{every: 1 hour, sensitivity: 5, distinct: device}",
        "{every: 1 hour, sensitivity: 5, different: [device]}",
    ],
)
def test_statistics_that_cannot_be_made_are_refused(tmp_path: Path, told: str) -> None:
    path = tmp_path / "latest" / "minutes.yaml"
    path.parent.mkdir()
    path.write_text(f"expectations: [{{type: expect_x}}]\nstatistics: {told}\n", "utf-8")
    with pytest.raises(SuiteError, match="statistics: are"):
        load_suite("latest/minutes", tmp_path)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(1, 40 * HOUR), max_size=6), max_size=6), st.integers(1, 5))
def test_the_last_stretches_are_those_of_the_whole_table_however_its_files_lie(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]], wanted: int
) -> None:
    path = tmp_path_factory.mktemp("table") / "minutes"
    tables = [windows(*((end, "a", 1.0, 1) for end in ends)) for ends in files if ends]
    for table in tables:
        write_deltalake(path, table, mode="append")

    def told(rows: pa.Table) -> list[StatisticsPoint]:
        return compute_window_points(rows, ["device"], ["mean"], HOUR, 40 * HOUR)

    found = read_last_points(path, "window_end", RecentIntervals(HOUR, wanted, 40 * HOUR), told)
    whole = told(pa.concat_tables(tables)) if tables else []
    assert found == whole[len(whole) - len(found) :]
    assert len(found) >= min(wanted, len(whole))


def test_old_files_are_not_read(tmp_path: Path) -> None:
    for hour in (1, 500, 501, 502):
        write_deltalake(tmp_path / "minutes", windows((hour * HOUR, "a", 1.0, hour)), mode="append")
    table = DeltaTable(tmp_path / "minutes")
    oldest = min(table.file_uris(), key=lambda uri: Path(uri.removeprefix("file://")).stat().st_mtime_ns)
    Path(oldest.removeprefix("file://")).unlink()
    found = read_last_points(
        tmp_path / "minutes",
        "window_end",
        RecentIntervals(HOUR, 3, 502 * HOUR),
        lambda rows: compute_window_points(rows, [], [], HOUR, 502 * HOUR),
    )
    assert [point.figures["records"] for point in found] == [500, 501, 502]
