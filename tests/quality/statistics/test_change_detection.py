"""Sudden changes in figures over time."""

from hypothesis import given
from hypothesis import strategies as st
from tests.quality.statistics.window_tables import HOUR, build_windows

from penstock.quality.statistics.change_detection import MIN_PREVIOUS_INTERVALS, detect_sudden_changes
from penstock.quality.statistics.series import StatisticsPoint, compute_window_points


def test_a_drop_of_distinct_values_is_a_sudden_change() -> None:
    def hour(number: int, devices: int) -> list[tuple[int, str, float, int]]:
        return [((number + 1) * HOUR, f"d{n % devices}", 1.0, 1) for n in range(100)]

    usual = [row for number in range(MIN_PREVIOUS_INTERVALS) for row in hour(number, 50)]
    final = (MIN_PREVIOUS_INTERVALS + 1) * HOUR
    changes_by_count = [
        detect_sudden_changes(
            compute_window_points(
                build_windows(*usual, *hour(MIN_PREVIOUS_INTERVALS, few)), [], [], HOUR, final, ["device"]
            ),
            5,
        )
        for few in (50, 20)
    ]
    assert [[change.figure for change in changes] for changes in changes_by_count] == [
        [],
        ["distinct_device"],
    ]


def build_points(*values: float, name: str = "records") -> list[StatisticsPoint]:
    return [StatisticsPoint(number * HOUR, {name: value}) for number, value in enumerate(values)]


def test_a_sudden_change_deviates_from_earlier_values() -> None:
    usual = [100.0, 104, 98, 101, 97, 103, 99, 102, 100]
    assert detect_sudden_changes(build_points(*usual, 112), 5) == []
    (change,) = detect_sudden_changes(build_points(*usual, 200), 5)
    assert str(change) == "records is 200, usually 100 (20.0 deviations)"
    assert detect_sudden_changes(build_points(*usual, 0), 5)[0].value == 0


def test_an_outlier_does_not_hide_the_next_one() -> None:
    usual = [100.0] * MIN_PREVIOUS_INTERVALS + [900, 100, 100]
    assert [change.value for change in detect_sudden_changes(build_points(*usual, 900), 5)] == [900]


def test_small_changes_of_shares_are_not_sudden() -> None:
    constant = [0.0] * MIN_PREVIOUS_INTERVALS
    assert detect_sudden_changes(build_points(*constant, 0.03, name="share_late"), 5) == []
    assert detect_sudden_changes(build_points(*constant, 0.2, name="share_late"), 5)[0].figure == "share_late"


@given(st.lists(st.floats(0, 1e9), max_size=30), st.floats(1, 20))
def test_few_or_equal_intervals_have_no_sudden_change(values: list[float], sensitivity: float) -> None:
    assert detect_sudden_changes(build_points(*values[:MIN_PREVIOUS_INTERVALS]), sensitivity) == []
    assert detect_sudden_changes(build_points(*[7.0] * len(values)), sensitivity) == []
