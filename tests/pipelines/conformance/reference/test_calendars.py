"""Calendar windows, against the calendar of another program."""

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
def other() -> Any:
    connection = duckdb.connect()
    try:
        connection.execute("LOAD icu")
    except duckdb.Error:
        pytest.skip("this duckdb was built without its calendars (icu)")
    return connection


@settings(deadline=None, max_examples=scale_examples(150))
@given(
    st.sampled_from(["day", "week", "month"]),
    st.sampled_from(ZONES),
    st.integers(0, 4_000_000_000_000),
)
def test_a_window_covers_its_instant_and_its_neighbours_touch_it(unit: Any, zone: str, time: int) -> None:
    window = Calendar(unit, zone)
    ((start, end),) = find_calendar_window(window, time)
    assert start <= time < end
    assert find_calendar_window(window, int(start)) == [(start, end)]
    assert find_calendar_window(window, int(end) - 1) == [(start, end)]
    assert find_calendar_window(window, int(end))[0][0] == end
    assert find_calendar_window(window, int(start) - 1)[0][1] == start


@settings(deadline=None, max_examples=scale_examples(100))
@given(time=st.integers(0, 2_000_000_000_000), unit=st.sampled_from(["day", "week", "month"]))
def test_windows_begin_where_another_program_truncates_to(other: Any, time: int, unit: Any) -> None:
    other.execute("SET TimeZone = 'Europe/Berlin'")
    row = other.execute(f"SELECT epoch_ms(date_trunc('{unit}', to_timestamp({time} / 1000.0)))").fetchone()
    assert find_calendar_window(Calendar(unit, "Europe/Berlin"), time)[0][0] == row[0]
