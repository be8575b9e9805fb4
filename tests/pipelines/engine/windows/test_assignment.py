"""Windows of panes are those of the reference, whatever their size, period and offset."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.conformance.reference.window_assignment import find_containing_windows
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.time_window import TimeWindow

SIZES = st.integers(1, 20)
TIMES = st.lists(st.integers(-50, 50), max_size=20)
WINDOWS = st.one_of(
    st.builds(Fixed, SIZES, st.just(0)),
    st.builds(lambda size, period, offset: Sliding(size, period, offset % period), SIZES, SIZES, SIZES),
    st.builds(Sessions, SIZES),
)


@given(WINDOWS, TIMES)
def test_each_time_is_in_the_windows_of_the_reference(window: TimeWindow, times: list[int]) -> None:
    found = window.assign(np.array(times, np.int64))
    rows = sorted(zip(found.element.tolist(), found.start.tolist(), found.end.tolist(), strict=True))
    assert rows == [
        (number, *bounds)
        for number, time in enumerate(times)
        for bounds in sorted(find_containing_windows(window, time))
    ]


@given(WINDOWS, TIMES)
def test_windows_are_counted_as_they_are_assigned(window: TimeWindow, times: list[int]) -> None:
    counts = window.count_windows(np.array(times, np.int64))
    assert counts.tolist() == [len(find_containing_windows(window, time)) for time in times]
