"""The sensor that reports committed batches as materializations."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterInstance,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from penstock.platform.control import ControlStore
from penstock.platform.control.interval_reports import IntervalReport, ReportIntervals, report_intervals
from penstock.platform.definitions.streams.batch_events import (
    LAST_BATCH_KEY,
    build_idle_materialization,
    build_materialization,
    build_observations,
)

SENSOR_NAME = "committed_batches"
SENSOR_INTERVAL_S = 5
MAX_REPORTS_PER_STREAM = 120
"""Most materializations of an asset after Dagster was down: an hour at one each half minute."""

MAX_EVENTS_PER_TICK = 500
"""A tick with this many events leaves other streams to the next; Dagster stops a tick after one minute."""

IDLE_REPORT_INTERVAL_MS = 300_000
"""How often an up-to-date stream without new batches is reported; the freshness policy allows twice as long."""

BEFORE_FIRST_BATCH = -1

AssetEvent = AssetMaterialization | AssetObservation


@dataclass(frozen=True)
class ReportedStream:
    """A stream and the assets that its batches materialize, itself first."""

    name: str
    assets: Sequence[AssetKey]


@dataclass(frozen=True)
class BatchReporter:
    """Reports for each stream what it committed in each interval of `report_interval_ms` that is over.

    Every report covers an interval of the same length, so that Dagster's plots show rates and not the rhythm of
    this sensor. After a downtime of Dagster, it reports the intervals that it missed.

    The last reported batch of an asset is read from Dagster's event log. If the daemon is killed between writing an
    event and saving the cursor, no batch is reported twice or lost. The cursor has the time of each stream's last
    report.
    """

    streams: Sequence[ReportedStream]
    open_store: Callable[[], ControlStore]
    now_ms: Callable[[], int]
    report_interval_ms: int
    find_caught_up: Callable[[], Collection[str]] = tuple
    """Streams that run, have a host and have no lag; they are reported as up to date if they commit nothing."""

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult | SkipReason:
        """Run one tick of the sensor."""
        now = self.now_ms()
        reported_at: dict[str, int] = json.loads(context.cursor or "{}")
        # If the clock was set back, times in the future would delay reports until then.
        reported_at = {name: at_ms if at_ms <= now else 0 for name, at_ms in reported_at.items()}
        intervals = ReportIntervals(max(self.report_interval_ms, SENSOR_INTERVAL_S * 1000), now)
        due = [
            stream for stream in self.streams if intervals.has_ended_since(reported_at.get(stream.name, 0))
        ]
        events: list[AssetEvent] = []
        # Streams that a full tick left out come first in the next tick.
        due.sort(key=lambda due_stream: reported_at.get(due_stream.name, 0))
        for stream, stream_events in self._collect_changes(due, intervals, context.instance):
            events += stream_events
            reported_at[stream.name] = now
            if len(events) >= MAX_EVENTS_PER_TICK:
                break
        for name, event in self._build_idle_events(due, reported_at, now, context.instance):
            events.append(event)
            reported_at[name] = now
        if not events:
            return SkipReason("No batch was committed since the last report")
        return SensorResult(asset_events=events, cursor=json.dumps(reported_at))

    def _collect_changes(
        self, streams: Sequence[ReportedStream], intervals: ReportIntervals, instance: DagsterInstance
    ) -> Iterator[tuple[ReportedStream, list[AssetEvent]]]:
        last_reported = _read_last_reported(instance, [key for stream in streams for key in stream.assets])
        for stream in streams:
            if events := list(self._build_stream_events(stream, intervals, last_reported)):
                yield stream, events

    def _build_stream_events(
        self, stream: ReportedStream, intervals: ReportIntervals, last_reported: Mapping[AssetKey, int]
    ) -> Iterator[AssetEvent]:
        store = self.open_store()
        reports_by_batch: dict[int, list[IntervalReport]] = {}
        for key in stream.assets:
            after_batch = last_reported.get(key, BEFORE_FIRST_BATCH)
            if after_batch not in reports_by_batch:
                reports_by_batch[after_batch] = list(
                    report_intervals(store, stream.name, after_batch, intervals, MAX_REPORTS_PER_STREAM)
                )
            yield from (build_materialization(key, report) for report in reports_by_batch[after_batch])
        newest = next((reports[-1] for reports in reports_by_batch.values() if reports), None)
        yield from build_observations(newest.summary) if newest else ()

    def _build_idle_events(
        self,
        due: Sequence[ReportedStream],
        reported_at: Mapping[str, int],
        now: int,
        instance: DagsterInstance,
    ) -> Iterator[tuple[str, AssetEvent]]:
        """Yield an event for each up-to-date stream that committed nothing since its last report."""
        idle_streams = [
            stream
            for stream in due
            if stream.name in reported_at and now - reported_at[stream.name] >= IDLE_REPORT_INTERVAL_MS
        ]
        caught_up = self.find_caught_up() if idle_streams else ()
        last_reported = _read_last_reported(
            instance, [stream.assets[0] for stream in idle_streams if stream.name in caught_up]
        )
        for stream in idle_streams:
            if (last_batch := last_reported.get(stream.assets[0])) is not None:
                yield stream.name, build_idle_materialization(stream.assets[0], last_batch)


def build_batch_sensor(reporter: BatchReporter) -> SensorDefinition:
    """Build the sensor; it is on by default."""
    return SensorDefinition(
        name=SENSOR_NAME,
        evaluation_fn=reporter.evaluate,
        minimum_interval_seconds=SENSOR_INTERVAL_S,
        default_status=DefaultSensorStatus.RUNNING,
        description="Reports committed batches as materializations of their assets.",
    )


def _read_last_reported(instance: DagsterInstance, keys: Iterable[AssetKey]) -> dict[AssetKey, int]:
    """Return the last batch in the newest materialization of each asset."""
    last_reported = {}
    for record in instance.get_asset_records(list(keys)):
        newest = record.asset_entry.last_materialization
        event = newest.asset_materialization if newest else None
        # It is text, and was a number in 0.1.0.
        if event and (batch := event.metadata.get(LAST_BATCH_KEY)) and batch.value is not None:
            last_reported[record.asset_entry.asset_key] = int(str(batch.value))
    return last_reported
