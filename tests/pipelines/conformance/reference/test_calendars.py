"""Calendar windows of the reference, compared with the calendar of DuckDB."""

from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples

from penstock.conformance.reference.window_assignment import find_calendar_window
from penstock.engine.windows.calendar import Calendar

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Pacific/Apia",
    "America/Havana",
]


@pytest.fixture(scope="module")
def icu_database() -> Any:
    connection = duckdb.connect()
    try:
        connection.execute("LOAD icu")
    except duckdb.Error:
        pytest.skip("this DuckDB has no ICU extension")
    return connection


@settings(deadline=None, max_examples=scale_examples(150))
@given(
    st.sampled_from(["day", "week", "month"]),
    st.sampled_from(ZONES),
    st.integers(0, 4_000_000_000_000),
)
def test_a_window_contains_its_time_and_touches_its_neighbours(unit: Any, zone: str, time: int) -> None:
    window = Calendar(unit, zone)
    ((start, end),) = find_calendar_window(window, time)
    assert start <= time < end
    assert find_calendar_window(window, int(start)) == [(start, end)]
    assert find_calendar_window(window, int(end) - 1) == [(start, end)]
    assert find_calendar_window(window, int(end))[0][0] == end
    assert find_calendar_window(window, int(start) - 1)[0][1] == start


@settings(deadline=None, max_examples=scale_examples(100))
@given(time=st.integers(0, 2_000_000_000_000), unit=st.sampled_from(["day", "week", "month"]))
def test_windows_start_where_duckdb_truncates(icu_database: Any, time: int, unit: Any) -> None:
    icu_database.execute("SET TimeZone = 'Europe/Berlin'")
    row = icu_database.execute(
        f"SELECT epoch_ms(date_trunc('{unit}', to_timestamp({time} / 1000.0)))"
    ).fetchone()
    assert find_calendar_window(Calendar(unit, "Europe/Berlin"), time)[0][0] == row[0]
