"""The sensor that turns committed batches into materializations."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterInstance,
    DefaultSensorStatus,
    IntMetadataValue,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from penstock.platform.control import ControlStore
from penstock.platform.control.reports import BatchSummary, summarize_in_intervals
from penstock.platform.definitions.streams.batch_events import (
    LAST_BATCH_KEY,
    build_idle_materialization,
    build_materialization,
    build_observations,
)

SENSOR_NAME = "committed_batches"
SENSOR_INTERVAL_S = 5
MAX_SUMMARIES_PER_STREAM = 120
"""In how many materializations of an asset an absence of Dagster is told: an hour of it, each half a minute."""

MAX_EVENTS_PER_TICK = 500
"""After how many events a tick leaves other streams to the next: it has a minute, and Dagster keeps each singly."""

IDLE_REPORT_INTERVAL_MS = 300_000
"""How often Dagster is told of a stream that keeps up and has nothing to do: its policy allows twice as long."""

BEFORE_FIRST_BATCH = -1

AssetEvent = AssetMaterialization | AssetObservation


@dataclass(frozen=True)
class ReportedStream:
    """A stream, and the assets that its batches materialize: itself first."""

    name: str
    assets: Sequence[AssetKey]


@dataclass(frozen=True)
class BatchReporter:
    """Says, of each stream, what it did since it was last told of, no more often than `pause_ms`.

    What happened while Dagster was away is told in stretches of the batches' own clock, each as long as a pause.

    What was told is looked up in Dagster's own event log, asset by asset: a daemon that was killed
    after writing an event and before its cursor repeats nothing and leaves nothing out. The cursor
    holds when each stream was last told of.
    """

    streams: Sequence[ReportedStream]
    open_store: Callable[[], ControlStore]
    now_ms: Callable[[], int]
    report_interval_ms: int
    find_caught_up: Callable[[], Collection[str]] = tuple
    """The streams that run, have a host and leave nothing undone: they are quiet where they commit nothing."""

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult | SkipReason:
        """One tick of the sensor."""
        now = self.now_ms()
        reported_at: dict[str, int] = json.loads(context.cursor or "{}")
        # After a clock went back, streams are not left untold until it is there again.
        reported_at = {name: at_ms if at_ms <= now else 0 for name, at_ms in reported_at.items()}
        due = [
            stream
            for stream in self.streams
            if now - reported_at.get(stream.name, 0) >= self.report_interval_ms
        ]
        events: list[AssetEvent] = []
        # Those that a full tick left out come first in the next.
        due.sort(key=lambda due_stream: reported_at.get(due_stream.name, 0))
        for stream, stream_events in self._collect_changes(due, context.instance):
            events += stream_events
            reported_at[stream.name] = now
            if len(events) >= MAX_EVENTS_PER_TICK:
                break
        for name, event in self._build_idle_events(due, reported_at, now, context.instance):
            events.append(event)
            reported_at[name] = now
        if not events:
            return SkipReason("no batch was committed since the last report")
        return SensorResult(asset_events=events, cursor=json.dumps(reported_at))

    def _collect_changes(
        self, streams: Sequence[ReportedStream], instance: DagsterInstance
    ) -> Iterator[tuple[ReportedStream, list[AssetEvent]]]:
        last_reported = _read_last_reported(instance, [key for stream in streams for key in stream.assets])
        for stream in streams:
            if events := list(self._build_stream_events(stream, last_reported)):
                yield stream, events

    def _build_stream_events(
        self, stream: ReportedStream, last_reported: Mapping[AssetKey, int]
    ) -> Iterator[AssetEvent]:
        summaries_by_batch: dict[int, list[BatchSummary]] = {}
        for key in stream.assets:
            after_batch = last_reported.get(key, BEFORE_FIRST_BATCH)
            if after_batch not in summaries_by_batch:
                summaries_by_batch[after_batch] = list(self._summarize_since(stream.name, after_batch))
            yield from (build_materialization(key, summary) for summary in summaries_by_batch[after_batch])
        newest = next(
            (batch_summaries[-1] for batch_summaries in summaries_by_batch.values() if batch_summaries), None
        )
        yield from build_observations(newest) if newest else ()

    def _build_idle_events(
        self,
        due: Sequence[ReportedStream],
        reported_at: Mapping[str, int],
        now: int,
        instance: DagsterInstance,
    ) -> Iterator[tuple[str, AssetEvent]]:
        """Of streams that were told of and do nothing since, for nothing comes: that they are up to date."""
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

    def _summarize_since(self, stream: str, after_batch: int) -> Iterator[BatchSummary]:
        step_ms = max(self.report_interval_ms, SENSOR_INTERVAL_S * 1000)
        return summarize_in_intervals(
            self.open_store(), stream, after_batch, step_ms, MAX_SUMMARIES_PER_STREAM
        )


def build_batch_sensor(reporter: BatchReporter) -> SensorDefinition:
    """The sensor, running from the first start on."""
    return SensorDefinition(
        name=SENSOR_NAME,
        evaluation_fn=reporter.evaluate,
        minimum_interval_seconds=SENSOR_INTERVAL_S,
        default_status=DefaultSensorStatus.RUNNING,
        description="Turns the batches that streams committed into materializations of their assets.",
    )


def _read_last_reported(instance: DagsterInstance, keys: Iterable[AssetKey]) -> dict[AssetKey, int]:
    """The last batch that each asset's newest materialization tells of."""
    last_reported = {}
    for record in instance.get_asset_records(list(keys)):
        newest = record.asset_entry.last_materialization
        event = newest.asset_materialization if newest else None
        batch = event.metadata.get(LAST_BATCH_KEY) if event else None
        if isinstance(batch, IntMetadataValue) and batch.value is not None:
            last_reported[record.asset_entry.asset_key] = batch.value
    return last_reported
