"""The estimated duration of a replay, compared with replays that were measured."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import insert

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.control.replay_history import MeasuredReplay, record_replay
from penstock.platform.control.row_mapping import to_batch_row
from penstock.platform.control.tables import batches
from penstock.platform.services.replay_estimate import (
    MODEL_ERROR,
    REPLAY_ERROR,
    ReplayEstimate,
    estimate_replay,
    format_seconds,
)

Batches = Sequence[tuple[int, float]]

TRIAL = [(number % 9 + 8, 520.0) for number in range(1_000)]
"""The newcomer's stream: a dozen records a batch, half a second each. 26,879 records replayed in 22.5 s."""
BUSY_MACHINE = [
    (1_011, 6_639.0),
    *((5 + number % 3, 100.0 + number % 7 * 20) for number in range(1_500)),
    *((size, duration_ms) for size, duration_ms in [(381, 617.0), (115, 412.0), (76, 708.0), (70, 663.0)]),
]
"""`sensor_minute`, with a load of 13 on two cores. 34,195 records replayed in 71.3 s, 42,573 in 58.4 s."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    opened = open_control_store(f"sqlite:///{tmp_path}/control.db")
    yield opened
    opened.close()


def store_batches(store: ControlStore, sizes_and_durations: Batches) -> None:
    records = []
    for number, (size, duration_ms) in enumerate(sizes_and_durations):
        account = PartitionAccount("sensors", 0, 0, size, size, size, 0, 0, 0)
        durations_ms = {"process": duration_ms}
        records.append(
            BatchRecord("minute", number, 1, "data", number, None, (account,), durations_ms=durations_ms)
        )
    with store.engine.begin() as connection:
        connection.execute(insert(batches), [to_batch_row(record) for record in records])


@pytest.mark.parametrize(
    ("live_batches", "records", "measured_seconds"),
    [(TRIAL, 26_879, 22.5), (BUSY_MACHINE, 34_195, 71.3), (BUSY_MACHINE, 42_573, 58.4)],
)
def test_a_measured_replay_is_within_the_range_of_its_estimate(
    store: ControlStore, live_batches: Batches, records: int, measured_seconds: float
) -> None:
    """The first was estimated at 553 s, by the rate at which records arrived."""
    store_batches(store, live_batches)
    estimate = estimate_replay(store, "minute", records)
    assert estimate.seconds_low <= measured_seconds <= estimate.seconds_high
    assert estimate.seconds_high / estimate.seconds == pytest.approx(MODEL_ERROR)


def test_the_time_per_record_comes_from_batches_of_different_size(store: ControlStore) -> None:
    """100 ms a batch and 1 ms a record: 100,000 records take 100 s, however few a live batch has."""
    cold = (10, 5_000.0)
    store_batches(store, [cold, *((size, 100.0 + size) for size in [10] * 90 + [2_000] * 10)])
    estimate = estimate_replay(store, "minute", 100_000)
    assert estimate.seconds == pytest.approx(100 + 15 + 2 * 5)
    assert estimate.source == "the durations of its last 101 batches"


def test_an_earlier_replay_is_a_better_base_than_batches(store: ControlStore) -> None:
    store_batches(store, TRIAL)
    for finished_at_ms, seconds in ((1, 500.0), (2, 30.0)):
        record_replay(store, MeasuredReplay("minute", finished_at_ms, 20_000, seconds, 10.0, 60.0))
    estimate = estimate_replay(store, "minute", 100_000)
    assert estimate.seconds == pytest.approx(10 + 20 * 5), (
        "the start once, and each record as long as the last"
    )
    assert estimate.seconds_high / estimate.seconds == pytest.approx(REPLAY_ERROR)
    assert str(estimate) == (
        "60 s to 4 min for up to 100,000 records, estimated from its last replay: 20,000 records in 30 s"
    )


def test_a_stream_without_batches_has_an_estimate(store: ControlStore) -> None:
    assert isinstance(estimate_replay(store, "minute", 0), ReplayEstimate)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (7.6, "8 s"), (44, "40 s"), (119, "120 s"), (150, "2 min"), (9e3, "2 h")],
)
def test_an_estimate_has_no_more_digits_than_it_knows(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
