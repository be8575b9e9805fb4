"""The sensor reports committed batches to Dagster, each once."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    Definitions,
    SensorResult,
    SkipReason,
    build_sensor_context,
)
from tests.platform.definitions.conftest import REPORT_MS, START_MS, Clock

from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.stages import Plan
from penstock.platform.control import ControlStore
from penstock.platform.control.database_engine import build_insert
from penstock.platform.control.interval_reports import REPORT_GRACE_MS
from penstock.platform.control.row_mapping import to_batch_row
from penstock.platform.control.tables import batches
from penstock.platform.definitions.streams.batch_sensor import MAX_REPORTS_PER_STREAM

INTERVAL_OVER_MS = REPORT_MS + REPORT_GRACE_MS
Tick = Callable[[], SensorResult | SkipReason]


class Daemon:
    """Evaluates the sensor like Dagster's daemon: stores the events, then the cursor."""

    def __init__(self, definitions: Definitions, instance: DagsterInstance, clock: Clock) -> None:
        self.sensor = definitions.resolve_sensor_def("committed_batches")
        self.instance = instance
        self.clock = clock
        self.cursor: str | None = None

    def tick_when_over(self) -> list[object]:
        """Tick when the report interval of the current time is over."""
        self.clock.at += INTERVAL_OVER_MS - (self.clock.at - START_MS) % REPORT_MS
        return self.tick()

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
        (int(event.metadata["first_batch"].value), int(event.metadata["batch"].value))
        for event in materializations
        if event.asset_key.to_user_string() == key
    ]


def store_batches(store: ControlStore, records: Iterable[BatchRecord]) -> None:
    """Store many batches in one transaction."""
    with store.engine.begin() as connection:
        connection.execute(build_insert(connection, batches), [to_batch_row(record) for record in records])


@pytest.fixture
def daemon(
    build_small_platform: Callable[..., Definitions], instance: DagsterInstance, clock: Clock
) -> Daemon:
    """The daemon of a platform with one stream."""
    return Daemon(build_small_platform(), instance, clock)


def test_after_a_clock_change_batches_are_reported_immediately(
    daemon: Daemon, store: ControlStore, make_batch: Callable[..., BatchRecord], clock: Clock
) -> None:
    store.record_batch(make_batch(0))
    assert list_batch_ranges(daemon.tick_when_over()) == [(0, 0)]
    clock.at -= 3_600_000
    store.record_batch(make_batch(1))
    assert list_batch_ranges(daemon.tick()) == [(1, 1)]
    store.record_batch(make_batch(2))
    assert list_batch_ranges(daemon.tick()) == [], "then at the usual interval"
    clock.at += INTERVAL_OVER_MS
    assert list_batch_ranges(daemon.tick()) == [(2, 2)]


def test_nothing_is_reported_before_the_first_batch(daemon: Daemon) -> None:
    assert daemon.tick_when_over() == []


def test_a_batch_becomes_a_materialization_of_stream_and_tables(
    daemon: Daemon, store: ControlStore, make_batch: Callable[..., BatchRecord]
) -> None:
    store.record_batch(make_batch(0))
    store.record_batch(make_batch(1))
    events = daemon.tick_when_over()
    assert [event.asset_key.to_user_string() for event in events] == [
        "streams/minute",
        "latest/minute",
        "panes/minute",
        "topics/sensors",
    ]
    assert {name: value.value for name, value in events[0].metadata.items()} == {
        "records_per_second": 0.6667,
        "batch_ms_p50": 30.0,
        "batch_ms_p99": 31.0,
        "late_share": 0.1,
        "invalid_share": 0.0,
        "consumer_lag_records": 4,
        "watermark_delay_seconds": 5.0,
        "watermark": (START_MS - 5_000) / 1000,
        "committed_at": (START_MS + 1) / 1000,
        "records_read": 20,
        "records_accepted": 18,
        "records_late": 2,
        "rows": 6,
        "panes_early": 4,
        "panes_on_time": 2,
        "state_rows": 3,
        "batches": 2,
        "first_batch": "0",
        "batch": "1",
        "state": {"minute": {"rows": 3, "bytes": 700}},
        "offsets": {"sensors": {"0": 20}},
    }
    assert list(events[0].metadata)[:6] == [
        "records_per_second",
        "batch_ms_p50",
        "batch_ms_p99",
        "late_share",
        "invalid_share",
        "consumer_lag_records",
    ], "the useful figures come first"


def test_batches_that_0_1_0_reported_are_not_reported_again(
    daemon: Daemon, instance: DagsterInstance, store, make_batch
) -> None:
    for key in ("streams", "latest", "panes"):
        instance.report_runless_asset_event(AssetMaterialization([key, "minute"], metadata={"batch": 0}))
    for number in range(2):
        store.record_batch(make_batch(number))
    assert list_batch_ranges(daemon.tick_when_over()) == [(1, 1)]


def test_a_steady_stream_has_one_report_per_interval_and_a_steady_rate(
    daemon: Daemon, store: ControlStore, clock: Clock, make_batch: Callable[..., BatchRecord]
) -> None:
    """Batches every 700 ms and a sensor that ticks every 5.3 s: plots once had teeth from 0 to 150."""
    reports, tick_ms, batch_ms, number = [], 5_300, 700, 0
    for tick in range(60):
        clock.at = START_MS + tick * tick_ms
        while number * batch_ms < tick * tick_ms:
            store.record_batch(replace(make_batch(number), clock_ms=START_MS + number * batch_ms))
            number += 1
        events = [event for event in daemon.tick() if event.asset_key == AssetKey(["streams", "minute"])]
        assert len(events) <= 1, "never two at the same time"
        reports += events
    assert len(reports) == (59 * tick_ms - REPORT_GRACE_MS) // REPORT_MS
    rates = [event.metadata["records_per_second"].value for event in reports]
    assert max(rates) - min(rates) <= 10 / (REPORT_MS / 1000), "intervals differ by one batch of ten records"


def test_a_stream_is_reported_once_per_interval(daemon: Daemon, store, clock: Clock, make_batch) -> None:
    reported = []
    for number in range(5):
        store.record_batch(replace(make_batch(number), clock_ms=clock.at))
        reported.append(list_batch_ranges(daemon.tick()))
        clock.at += REPORT_MS // 2
    assert reported == [[], [], [], [(0, 1)], []]


def test_the_time_of_a_report_is_that_of_the_commit_and_not_of_the_batch(
    daemon: Daemon, store, clock: Clock, make_batch
) -> None:
    """A batch that failed for half an hour keeps its clock; it was once shown as committed then."""
    committed_at_ms = START_MS + 1_800_000
    clock.at = committed_at_ms
    store.record_batch(replace(make_batch(0), clock_ms=START_MS, committed_at_ms=committed_at_ms))
    (event, *_) = daemon.tick_when_over()
    assert event.metadata["committed_at"].value == committed_at_ms / 1000


def test_a_silent_stream_is_not_reported_again(daemon: Daemon, store, clock: Clock, make_batch) -> None:
    store.record_batch(make_batch(0))
    assert list_batch_ranges(daemon.tick_when_over()) == [(0, 0)]
    clock.at += 10 * REPORT_MS
    assert daemon.tick() == []


def test_a_daemon_killed_before_its_cursor_reports_nothing_twice(
    daemon: Daemon, store, clock: Clock, make_batch
) -> None:
    store.record_batch(make_batch(0))
    clock.at += INTERVAL_OVER_MS
    assert list_batch_ranges(daemon.tick(killed_before_cursor=True)) == [(0, 0)]
    assert daemon.tick() == []
    store.record_batch(make_batch(1))
    assert list_batch_ranges(daemon.tick()) == [(1, 1)]


def test_a_daemon_killed_between_two_events_reports_the_rest_later(
    daemon: Daemon, store, clock: Clock, make_batch
) -> None:
    store.record_batch(make_batch(0))
    clock.at += INTERVAL_OVER_MS
    daemon.tick(killed_after_events=1)
    store.record_batch(make_batch(1))
    events = daemon.tick()
    assert list_batch_ranges(events) == [(1, 1)]
    assert list_batch_ranges(events, "latest/minute") == [(0, 1)]


def test_batches_during_an_absence_are_reported_once(
    daemon: Daemon, instance: DagsterInstance, store, make_batch
) -> None:
    for number in range(500):
        store.record_batch(make_batch(number))
    assert list_batch_ranges(daemon.tick_when_over()) == [(0, 499)]
    newest = instance.get_latest_materialization_event(AssetKey(["streams", "minute"]))
    assert newest.asset_materialization.metadata["batches"].value == 500


def test_an_absence_is_reported_in_intervals(daemon: Daemon, store, clock: Clock, make_batch) -> None:
    """Batches every ten seconds for two minutes, with a pause of half an hour after the sixth."""
    clocks = [START_MS + number * 10_000 + (1_800_000 if number > 5 else 0) for number in range(12)]
    for number, clock_ms in enumerate(clocks):
        store.record_batch(replace(make_batch(number), clock_ms=clock_ms, watermark_ms=clock_ms - 7_000))
    clock.at = clocks[-1]
    events = daemon.tick_when_over()
    expected = [(0, 2), (3, 5), (6, 8), (9, 11)]
    assert list_batch_ranges(events) == list_batch_ranges(events, "latest/minute") == expected
    shown = [event.metadata for event in events if event.asset_key == AssetKey(["streams", "minute"])]
    assert [event["committed_at"].value for event in shown] == [clocks[last] / 1000 for _, last in expected]
    assert {event["watermark_delay_seconds"].value for event in shown} == {7.0}, "as of the batch"


def test_replaced_batches_are_reported_in_order_once(daemon: Daemon, store, clock: Clock, make_batch) -> None:
    store.record_batch(make_batch(0))
    assert list_batch_ranges(daemon.tick_when_over()) == [(0, 0)]
    for number in (1, 2):
        store.record_batch(replace(make_batch(number), clock_ms=clock.at))
    store.mark_batches_replaced("minute", 3)
    store.record_batch(replace(make_batch(3), kind="replay", clock_ms=clock.at + REPORT_MS))
    clock.at += REPORT_MS
    events = daemon.tick_when_over()
    assert list_batch_ranges(events) == list_batch_ranges(events, "latest/minute") == [(1, 2), (3, 3)]
    shown = [event for event in events if event.asset_key == AssetKey(["streams", "minute"])]
    assert shown[0].metadata["batches_replaced"].value == 2
    assert "batches_replaced" not in shown[1].metadata, "no plot of zeros"
    assert shown[0].description.endswith("; a replay later replaced 2 of them")
    assert daemon.tick_when_over() == []


def test_a_long_absence_has_a_limited_number_of_reports(
    daemon: Daemon, store, clock: Clock, make_batch
) -> None:
    hour_ms = 3_600_000
    store_batches(
        store, (replace(make_batch(number), clock_ms=START_MS + number * hour_ms) for number in range(500))
    )
    clock.at += 510 * hour_ms
    materializations = list_batch_ranges(daemon.tick())
    assert len(materializations) in range(90, MAX_REPORTS_PER_STREAM + 2)
    assert [first for first, _ in materializations] == [0, *(last + 1 for _, last in materializations[:-1])]
    assert materializations[-1][1] == 499


def test_a_full_tick_leaves_other_streams_to_the_next(
    build_small_platform, instance, store, clock: Clock, make_batch, make_plan: Callable[[str], Plan]
) -> None:
    names = [f"stream_{number}" for number in range(4)]
    for name in names:
        records = (
            replace(make_batch(number, name), clock_ms=START_MS + number * REPORT_MS) for number in range(120)
        )
        store_batches(store, records)
    clock.at += 121 * REPORT_MS
    daemon = Daemon(build_small_platform(*[make_plan(name) for name in names]), instance, clock)
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
    clock: Clock,
) -> None:
    names = [f"stream_{number}" for number in range(100)]
    for name in names:
        store_batches(store, (replace(make_batch(number, name), clock_ms=number) for number in range(50)))
    daemon = Daemon(build_small_platform(*[make_plan(name) for name in names]), instance, clock)
    assert len(daemon.tick()) == 400
    daemon.cursor = None
    for name in names:
        store.record_batch(make_batch(50, name))
    clock.at += INTERVAL_OVER_MS
    started_at = time.perf_counter()
    with build_sensor_context(instance=instance, cursor=None) as context:
        result = daemon.sensor(context)
    assert len(result.asset_events) == 400
    assert (
        time.perf_counter() - started_at < 10
    )  # five times the promised time: a guard against a slow query plan
