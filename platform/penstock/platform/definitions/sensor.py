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
from penstock.platform.control.reports import BatchSummary, summaries
from penstock.platform.definitions.events import LAST_BATCH, materialization, observations, quiet

NAME = "committed_batches"
EVERY_SECONDS = 5
MOST_STRETCHES = 120
"""In how many materializations of an asset an absence of Dagster is told: an hour of it, each half a minute."""

MOST_EVENTS = 500
"""After how many events a tick leaves other streams to the next: it has a minute, and Dagster keeps each singly."""

QUIET_MS = 300_000
"""How often Dagster is told of a stream that keeps up and has nothing to do: its policy allows twice as long."""

FROM_THE_START = -1

Event = AssetMaterialization | AssetObservation


@dataclass(frozen=True)
class Reported:
    """A stream, and the assets that its batches materialize: itself first."""

    name: str
    assets: Sequence[AssetKey]


@dataclass(frozen=True)
class Reporter:
    """Says, of each stream, what it did since it was last told of, no more often than `pause_ms`.

    What happened while Dagster was away is told in stretches of the batches' own clock, each as long as a pause.

    What was told is looked up in Dagster's own event log, asset by asset: a daemon that was killed
    after writing an event and before its cursor repeats nothing and leaves nothing out. The cursor
    holds when each stream was last told of.
    """

    streams: Sequence[Reported]
    store: Callable[[], ControlStore]
    now_ms: Callable[[], int]
    pause_ms: int
    keeping_up: Callable[[], Collection[str]] = tuple
    """The streams that run, have a host and leave nothing undone: they are quiet where they commit nothing."""

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult | SkipReason:
        """One tick of the sensor."""
        now = self.now_ms()
        told: dict[str, int] = json.loads(context.cursor or "{}")
        # After a clock went back, streams are not left untold until it is there again.
        told = {name: at if at <= now else 0 for name, at in told.items()}
        due = [stream for stream in self.streams if now - told.get(stream.name, 0) >= self.pause_ms]
        events: list[Event] = []
        # Those that a full tick left out come first in the next.
        due.sort(key=lambda each: told.get(each.name, 0))
        for stream, found in self._changes(due, context.instance):
            events += found
            told[stream.name] = now
            if len(events) >= MOST_EVENTS:
                break
        for name, event in self._quiet(due, told, now, context.instance):
            events.append(event)
            told[name] = now
        if not events:
            return SkipReason("no batch was committed since the last report")
        return SensorResult(asset_events=events, cursor=json.dumps(told))

    def _changes(
        self, streams: Sequence[Reported], instance: DagsterInstance
    ) -> Iterator[tuple[Reported, list[Event]]]:
        known = _last_told(instance, [key for stream in streams for key in stream.assets])
        for stream in streams:
            if events := list(self._events(stream, known)):
                yield stream, events

    def _events(self, stream: Reported, known: Mapping[AssetKey, int]) -> Iterator[Event]:
        found: dict[int, list[BatchSummary]] = {}
        for key in stream.assets:
            after = known.get(key, FROM_THE_START)
            if after not in found:
                found[after] = list(self._stretches(stream.name, after))
            yield from (materialization(key, summary) for summary in found[after])
        newest = next((told[-1] for told in found.values() if told), None)
        yield from observations(newest) if newest else ()

    def _quiet(
        self, due: Sequence[Reported], told: Mapping[str, int], now: int, instance: DagsterInstance
    ) -> Iterator[tuple[str, Event]]:
        """Of streams that were told of and do nothing since, for nothing comes: that they are up to date."""
        still = [each for each in due if each.name in told and now - told[each.name] >= QUIET_MS]
        well = self.keeping_up() if still else ()
        known = _last_told(instance, [each.assets[0] for each in still if each.name in well])
        for each in still:
            if (last := known.get(each.assets[0])) is not None:
                yield each.name, quiet(each.assets[0], last)

    def _stretches(self, stream: str, after: int) -> Iterator[BatchSummary]:
        step_ms = max(self.pause_ms, EVERY_SECONDS * 1000)
        return summaries(self.store(), stream, after, step_ms, MOST_STRETCHES)


def batch_sensor(reporter: Reporter) -> SensorDefinition:
    """The sensor, running from the first start on."""
    return SensorDefinition(
        name=NAME,
        evaluation_fn=reporter.evaluate,
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        description="Turns the batches that streams committed into materializations of their assets.",
    )


def _last_told(instance: DagsterInstance, keys: Iterable[AssetKey]) -> dict[AssetKey, int]:
    """The last batch that each asset's newest materialization tells of."""
    told = {}
    for record in instance.get_asset_records(list(keys)):
        newest = record.asset_entry.last_materialization
        event = newest.asset_materialization if newest else None
        batch = event.metadata.get(LAST_BATCH) if event else None
        if isinstance(batch, IntMetadataValue) and batch.value is not None:
            told[record.asset_entry.asset_key] = batch.value
    return told
