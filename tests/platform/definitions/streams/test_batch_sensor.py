"""The sensor reports committed batches to Dagster, each once."""

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
from penstock.engine.plan.stages import Plan
from penstock.platform.control import ControlStore
from penstock.platform.control.database_engine import build_insert
from penstock.platform.control.row_mapping import to_batch_row
from penstock.platform.control.tables import batches
from penstock.platform.definitions.streams.batch_sensor import MAX_SUMMARIES_PER_STREAM

REPORT_MS, START_MS = 30_000, 1_700_000_000_000
Tick = Callable[[], SensorResult | SkipReason]


class Daemon:
    """Evaluates the sensor like Dagster's daemon: stores the events, then the cursor."""

    def __init__(self, definitions: Definitions, instance: DagsterInstance) -> None:
        self.sensor = definitions.resolve_sensor_def("committed_batches")
        self.instance = instance
        self.cursor: str | None = None

    def tick(
        self, killed_before_cursor: bool = False, killed_after_events: int | None = None
    ) -> list[object]:
        with build_sensor_context(instance=self.instance, cursor=self.cursor) as context:
            result = self.sensor(context)
        if isinstance(result, SkipReason):
            return []
        events = result.asset_events[:killed_after_events]
        for event in events:
            self.instance.report_runless_asset_event(event)
        if not killed_before_cursor and killed_after_events is None:
            self.cursor = result.cursor
        return events


def list_batch_ranges(events: list[object], key: str = "streams/minute") -> list[tuple[int, int]]:
    """Return the first and last batch of each materialization of an asset."""
    materializations = [event for event in events if isinstance(event, AssetMaterialization)]
    return [
        (event.metadata["first_batch"].value, event.metadata["batch"].value)
        for event in materializations
        if event.asset_key.to_user_string() == key
    ]


def store_batches(store: ControlStore, records: Iterable[BatchRecord]) -> None:
    """Store many batches in one transaction."""
    with store.engine.begin() as connection:
        connection.execute(build_insert(connection, batches), [to_batch_row(record) for record in records])


def test_after_a_clock_change_batches_are_reported_immediately(
    build_small_platform, instance, store: ControlStore, make_batch: Callable[..., BatchRecord], clock
) -> None:
    daemon = Daemon(build_small_platform(), instance)
    store.record_batch(make_batch(0))
    assert list_batch_ranges(daemon.tick()) == [(0, 0)]
    clock.at -= 3_600_000
    store.record_batch(make_batch(1))
    assert list_batch_ranges(daemon.tick()) == [(1, 1)]
    store.record_batch(make_batch(2))
    assert list_batch_ranges(daemon.tick()) == [], "then at the usual interval"
    clock.at += REPORT_MS
    assert list_batch_ranges(daemon.tick()) == [(2, 2)]


def test_nothing_is_reported_before_the_first_batch(build_small_platform, instance) -> None:
    assert Daemon(build_small_platform(), instance).tick() == []


def test_a_batch_becomes_a_materialization_of_stream_and_tables(
    build_small_platform, instance, store: ControlStore, make_batch: Callable[..., BatchRecord]
) -> None:
    store.record_batch(make_batch(0))
    store.record_batch(make_batch(1))
    events = Daemon(build_small_platform(), instance).tick()
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


def test_a_stream_is_reported_at_most_once_per_interval(
    build_small_platform, instance, store, clock, make_batch
) -> None:
    daemon, reported = Daemon(build_small_platform(), instance), []
    for number in range(4):
        store.record_batch(make_batch(number))
        reported.append(list_batch_ranges(daemon.tick()))
        clock.at += REPORT_MS // 2
    assert reported == [[(0, 0)], [], [(1, 2)], []]


def test_a_silent_stream_is_not_reported_again(
    build_small_platform, instance, store, clock, make_batch
) -> None:
    daemon = Daemon(build_small_platform(), instance)
    store.record_batch(make_batch(0))
    assert list_batch_ranges(daemon.tick()) == [(0, 0)]
    clock.at += 10 * REPORT_MS
    assert daemon.tick() == []


def test_a_daemon_killed_before_its_cursor_reports_nothing_twice(
    build_small_platform, instance, store, clock, make_batch
) -> None:
    daemon = Daemon(build_small_platform(), instance)
    store.record_batch(make_batch(0))
    assert list_batch_ranges(daemon.tick(killed_before_cursor=True)) == [(0, 0)]
    assert daemon.tick() == []
    store.record_batch(make_batch(1))
    assert list_batch_ranges(daemon.tick()) == [(1, 1)]


def test_a_daemon_killed_between_two_events_reports_the_rest_later(
    build_small_platform, instance, store, make_batch
) -> None:
    daemon = Daemon(build_small_platform(), instance)
    store.record_batch(make_batch(0))
    daemon.tick(killed_after_events=1)
    store.record_batch(make_batch(1))
    events = daemon.tick()
    assert list_batch_ranges(events) == [(1, 1)]
    assert list_batch_ranges(events, "latest/minute") == [(0, 1)]


def test_batches_during_an_absence_are_reported_once(
    build_small_platform, instance, store, make_batch
) -> None:
    for number in range(500):
        store.record_batch(make_batch(number))
    daemon = Daemon(build_small_platform(), instance)
    assert list_batch_ranges(daemon.tick()) == [(0, 499)]
    newest = instance.get_latest_materialization_event(AssetKey(["streams", "minute"]))
    assert newest.asset_materialization.metadata["batches"].value == 500


def test_an_absence_is_reported_in_intervals_of_batch_time(
    build_small_platform, instance, store, make_batch
) -> None:
    """Batches every ten seconds for two minutes, with a pause of half an hour after the sixth."""
    clocks = [START_MS + number * 10_000 + (1_800_000 if number > 5 else 0) for number in range(12)]
    for number, clock_ms in enumerate(clocks):
        store.record_batch(replace(make_batch(number), clock_ms=clock_ms, watermark_ms=clock_ms - 7_000))
    events = Daemon(build_small_platform(), instance).tick()
    expected = [(0, 2), (3, 5), (6, 8), (9, 11)]
    assert list_batch_ranges(events) == list_batch_ranges(events, "latest/minute") == expected
    shown = [event.metadata for event in events if event.asset_key == AssetKey(["streams", "minute"])]
    assert [event["committed_at"].value for event in shown] == [clocks[last] / 1000 for _, last in expected]
    assert {event["lag_seconds"].value for event in shown} == {7.0}, "the lag at the time of the batch"


def test_replaced_batches_are_reported_in_order_once(
    build_small_platform, instance, store, clock, make_batch
) -> None:
    daemon = Daemon(build_small_platform(), instance)
    store.record_batch(make_batch(0))
    assert list_batch_ranges(daemon.tick()) == [(0, 0)]
    for number in (1, 2):
        store.record_batch(make_batch(number))
    store.mark_batches_replaced("minute", 3)
    store.record_batch(replace(make_batch(3), kind="replay", clock_ms=START_MS + 2 * REPORT_MS))
    clock.at += REPORT_MS
    events = daemon.tick()
    assert list_batch_ranges(events) == list_batch_ranges(events, "latest/minute") == [(1, 2), (3, 3)]
    shown = [event for event in events if event.asset_key == AssetKey(["streams", "minute"])]
    assert [event.metadata["batches_replaced"].value for event in shown] == [2, 0]
    assert shown[0].description.endswith("; a replay later replaced 2 of them")
    clock.at += REPORT_MS
    assert daemon.tick() == []


def test_a_long_absence_has_a_limited_number_of_reports(
    build_small_platform, instance, store, make_batch
) -> None:
    store_batches(
        store, (replace(make_batch(number), clock_ms=START_MS + number * 3_600_000) for number in range(500))
    )
    materializations = list_batch_ranges(Daemon(build_small_platform(), instance).tick())
    assert len(materializations) in range(90, MAX_SUMMARIES_PER_STREAM + 1)
    assert [first for first, _ in materializations] == [0, *(last + 1 for _, last in materializations[:-1])]
    assert materializations[-1][1] == 499


def test_a_full_tick_leaves_other_streams_to_the_next(
    build_small_platform, instance, store, make_batch, make_plan: Callable[[str], Plan]
) -> None:
    names = [f"stream_{number}" for number in range(4)]
    for name in names:
        records = (
            replace(make_batch(number, name), clock_ms=START_MS + number * REPORT_MS) for number in range(120)
        )
        store_batches(store, records)
    daemon = Daemon(build_small_platform(*[make_plan(name) for name in names]), instance)
    ticks = [daemon.tick() for _ in range(3)]
    assert [len(events) for events in ticks] == [2 * (3 * 120 + 1), 2 * (3 * 120 + 1), 0]
    for name in names:
        assert (
            len(
                [
                    batch_range
                    for events in ticks
                    for batch_range in list_batch_ranges(events, f"streams/{name}")
                ]
            )
            == 120
        )


def test_a_tick_over_a_hundred_streams_is_fast(
    build_small_platform,
    instance,
    store: ControlStore,
    make_plan: Callable[[str], Plan],
    make_batch: Callable[..., BatchRecord],
) -> None:
    names = [f"stream_{number}" for number in range(100)]
    for name in names:
        store_batches(store, (replace(make_batch(number, name), clock_ms=number) for number in range(50)))
    daemon = Daemon(build_small_platform(*[make_plan(name) for name in names]), instance)
    assert len(daemon.tick()) == 400
    daemon.cursor = None
    for name in names:
        store.record_batch(make_batch(50, name))
    started_at = time.perf_counter()
    with build_sensor_context(instance=instance, cursor=None) as context:
        result = daemon.sensor(context)
    assert len(result.asset_events) == 400
    assert (
        time.perf_counter() - started_at < 10
    )  # five times the promised time: a guard against a slow query plan
