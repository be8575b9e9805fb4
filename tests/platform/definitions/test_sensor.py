"""What the sensor tells Dagster of committed batches, and that it tells it once."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    Definitions,
    SensorResult,
    SkipReason,
    build_sensor_context,
)

from penstock.engine.host.control import BatchRecord
from penstock.engine.plan import Plan
from penstock.platform.control import ControlStore
from penstock.platform.control.database_engine import build_insert
from penstock.platform.control.row_mapping import to_batch_row
from penstock.platform.control.tables import batches
from penstock.platform.definitions.streams.batch_sensor import MAX_SUMMARIES_PER_STREAM

REPORT_MS, START_MS = 30_000, 1_700_000_000_000
Tick = Callable[[], SensorResult | SkipReason]


class Daemon:
    """Does with a tick what Dagster's daemon does: keeps the events, then the cursor."""

    def __init__(self, definitions: Definitions, instance: DagsterInstance) -> None:
        self.sensor = definitions.resolve_sensor_def("committed_batches")
        self.instance = instance
        self.cursor: str | None = None

    def tick(self, dies_before_cursor: bool = False, dies_after_events: int | None = None) -> list[object]:
        with build_sensor_context(instance=self.instance, cursor=self.cursor) as context:
            result = self.sensor(context)
        if isinstance(result, SkipReason):
            return []
        events = result.asset_events[:dies_after_events]
        for event in events:
            self.instance.report_runless_asset_event(event)
        if not dies_before_cursor and dies_after_events is None:
            self.cursor = result.cursor
        return events


def told(events: list[object], key: str = "streams/minute") -> list[tuple[int, int]]:
    """First and last batch of the materializations of an asset."""
    found = [one for one in events if isinstance(one, AssetMaterialization)]
    return [
        (one.metadata["first_batch"].value, one.metadata["batch"].value)
        for one in found
        if one.asset_key.to_user_string() == key
    ]


def write(store: ControlStore, records: Iterable[BatchRecord]) -> None:
    """Many batches in one transaction."""
    with store.engine.begin() as connection:
        connection.execute(build_insert(connection, batches), [to_batch_row(record) for record in records])


def test_after_a_clock_went_back_streams_are_told_of_at_once(
    make, instance, store: ControlStore, sample: Callable[..., BatchRecord], clock
) -> None:
    daemon = Daemon(make(), instance)
    store.record_batch(sample(0))
    assert told(daemon.tick()) == [(0, 0)]
    clock.at -= 3_600_000
    store.record_batch(sample(1))
    assert told(daemon.tick()) == [(1, 1)]
    store.record_batch(sample(2))
    assert told(daemon.tick()) == [], "and no more often than else"
    clock.at += REPORT_MS
    assert told(daemon.tick()) == [(2, 2)]


def test_nothing_is_told_before_the_first_batch(make, instance) -> None:
    assert Daemon(make(), instance).tick() == []


def test_a_batch_becomes_a_materialization_of_stream_and_tables(
    make, instance, store: ControlStore, sample: Callable[..., BatchRecord]
) -> None:
    store.record_batch(sample(0))
    store.record_batch(sample(1))
    events = Daemon(make(), instance).tick()
    assert [event.asset_key.to_user_string() for event in events] == [
        "streams/minute",
        "latest/minute",
        "panes/minute",
        "topics/sensors",
    ]
    shown = {name: value.value for name, value in events[0].metadata.items()}
    expected = {"batch": 1, "batches": 2, "rows": 6, "records_read": 20, "records_late": 2, "lag_records": 4}
    assert shown | expected == shown
    assert (shown["panes_early"], shown["panes_on_time"], shown["lag_seconds"]) == (4, 2, 5.0)
    assert (shown["batch_ms_mean"], shown["batch_ms_longest"]) == (30.5, 31.0)
    assert (shown["state_rows"], shown["state"]) == (3, {"minute": {"rows": 3, "bytes": 700}})
    assert shown["offsets"] == {"sensors": {"0": 20}}


def test_a_stream_is_told_of_no_more_often_than_agreed(make, instance, store, clock, sample) -> None:
    daemon, seen = Daemon(make(), instance), []
    for number in range(4):
        store.record_batch(sample(number))
        seen.append(told(daemon.tick()))
        clock.at += REPORT_MS // 2
    assert seen == [[(0, 0)], [], [(1, 2)], []]


def test_a_silent_stream_is_not_told_of_again(make, instance, store, clock, sample) -> None:
    daemon = Daemon(make(), instance)
    store.record_batch(sample(0))
    assert told(daemon.tick()) == [(0, 0)]
    clock.at += 10 * REPORT_MS
    assert daemon.tick() == []


def test_a_daemon_killed_before_its_cursor_tells_nothing_twice(make, instance, store, clock, sample) -> None:
    daemon = Daemon(make(), instance)
    store.record_batch(sample(0))
    assert told(daemon.tick(dies_before_cursor=True)) == [(0, 0)]
    assert daemon.tick() == []
    store.record_batch(sample(1))
    assert told(daemon.tick()) == [(1, 1)]


def test_a_daemon_killed_between_two_events_tells_the_rest_later(make, instance, store, sample) -> None:
    daemon = Daemon(make(), instance)
    store.record_batch(sample(0))
    daemon.tick(dies_after_events=1)
    store.record_batch(sample(1))
    events = daemon.tick()
    assert told(events) == [(1, 1)]
    assert told(events, "latest/minute") == [(0, 1)]


def test_what_happened_without_dagster_is_told_afterwards_once(make, instance, store, sample) -> None:
    for number in range(500):
        store.record_batch(sample(number))
    daemon = Daemon(make(), instance)
    assert told(daemon.tick()) == [(0, 499)]
    newest = instance.get_latest_materialization_event(AssetKey(["streams", "minute"]))
    assert newest.asset_materialization.metadata["batches"].value == 500


def test_an_absence_is_told_in_stretches_of_the_batches_own_time(make, instance, store, sample) -> None:
    """Two minutes of batches, each ten seconds later than the one before, and half an hour after the sixth."""
    clocks = [START_MS + number * 10_000 + (1_800_000 if number > 5 else 0) for number in range(12)]
    for number, clock_ms in enumerate(clocks):
        store.record_batch(replace(sample(number), clock_ms=clock_ms, watermark_ms=clock_ms - 7_000))
    events = Daemon(make(), instance).tick()
    expected = [(0, 2), (3, 5), (6, 8), (9, 11)]
    assert told(events) == told(events, "latest/minute") == expected
    shown = [one.metadata for one in events if one.asset_key == AssetKey(["streams", "minute"])]
    assert [one["committed_at"].value for one in shown] == [clocks[last] / 1000 for _, last in expected]
    assert {one["lag_seconds"].value for one in shown} == {7.0}, "as it was then, not as it is now"


def test_batches_that_a_replay_replaced_before_dagster_was_told_are_told_in_order_once(
    make, instance, store, clock, sample
) -> None:
    daemon = Daemon(make(), instance)
    store.record_batch(sample(0))
    assert told(daemon.tick()) == [(0, 0)]
    for number in (1, 2):
        store.record_batch(sample(number))
    store.mark_batches_replaced("minute", 3)
    store.record_batch(replace(sample(3), kind="replay", clock_ms=START_MS + 2 * REPORT_MS))
    clock.at += REPORT_MS
    events = daemon.tick()
    assert told(events) == told(events, "latest/minute") == [(1, 2), (3, 3)]
    shown = [event for event in events if event.asset_key == AssetKey(["streams", "minute"])]
    assert [event.metadata["batches_replaced"].value for event in shown] == [2, 0]
    assert shown[0].description.endswith("; a replay later replaced 2 of them")
    clock.at += REPORT_MS
    assert daemon.tick() == []


def test_a_long_absence_is_told_in_no_more_stretches_than_an_hour(make, instance, store, sample) -> None:
    write(store, (replace(sample(number), clock_ms=START_MS + number * 3_600_000) for number in range(500)))
    found = told(Daemon(make(), instance).tick())
    assert len(found) in range(90, MAX_SUMMARIES_PER_STREAM + 1)
    assert [first for first, _ in found] == [0, *(last + 1 for _, last in found[:-1])]
    assert found[-1][1] == 499


def test_a_tick_that_is_full_leaves_the_others_to_the_next(
    make, instance, store, sample, example: Callable[[str], Plan]
) -> None:
    names = [f"stream_{number}" for number in range(4)]
    for name in names:
        each = (
            replace(sample(number, name), clock_ms=START_MS + number * REPORT_MS) for number in range(120)
        )
        write(store, each)
    daemon = Daemon(make(*[example(name) for name in names]), instance)
    ticks = [daemon.tick() for _ in range(3)]
    assert [len(events) for events in ticks] == [2 * (3 * 120 + 1), 2 * (3 * 120 + 1), 0]
    for name in names:
        assert len([one for events in ticks for one in told(events, f"streams/{name}")]) == 120


def test_a_tick_over_a_hundred_streams_and_many_old_batches_is_quick(
    make, instance, store: ControlStore, example: Callable[[str], Plan], sample: Callable[..., BatchRecord]
) -> None:
    names = [f"stream_{number}" for number in range(100)]
    for name in names:
        write(store, (replace(sample(number, name), clock_ms=number) for number in range(50)))
    daemon = Daemon(make(*[example(name) for name in names]), instance)
    assert len(daemon.tick()) == 400
    daemon.cursor = None
    for name in names:
        store.record_batch(sample(50, name))
    began = time.perf_counter()
    with build_sensor_context(instance=instance, cursor=None) as context:
        result = daemon.sensor(context)
    assert len(result.asset_events) == 400
    assert time.perf_counter() - began < 10  # five times what is promised: a guard against a wrong plan
