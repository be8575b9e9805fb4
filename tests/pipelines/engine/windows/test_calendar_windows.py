"""Downstream stages assign days, weeks and months of any time zone and year as the reference does."""

from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.conformance.reference.window_assignment import find_containing_windows
from penstock.engine.windows.calendar import Calendar

ZONES = ("UTC", "Europe/Berlin", "America/Havana", "Africa/Cairo", "Pacific/Apia", "Asia/Kathmandu")
UNITS = ("day", "week", "month")
HOUR = 3_600_000


def at(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000)


def bounds(window: Calendar, times: list[int]) -> list[tuple[float, float]]:
    found = window.assign(np.array(times, np.int64))
    assert found.element.tolist() == list(range(len(times)))
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


@settings(deadline=None)
@given(
    window=st.builds(Calendar, st.sampled_from(UNITS), st.sampled_from(ZONES)),
    times=st.lists(st.integers(at(1, 1, 2), at(9999, 12, 31) + 23 * HOUR), max_size=20),
)
def test_an_instant_is_in_the_window_of_the_reference(window: Calendar, times: list[int]) -> None:
    assert bounds(window, times) == [find_containing_windows(window, time)[0] for time in times]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("year", [2011, 2036, 2037, 2052])
def test_the_days_of_a_year_are_adjacent_in_every_time_zone(zone: str, year: int) -> None:
    window, times = Calendar("day", zone), [at(year, 1, 1) + hour * HOUR for hour in range(0, 365 * 24, 5)]
    found = bounds(window, times)
    assert found == [find_containing_windows(window, time)[0] for time in times]
    assert all(one[1] == other[0] for one, other in pairwise(dict.fromkeys(found)))
