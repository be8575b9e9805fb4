"""What waits for streams is shown as of now, also where no batch tells of it."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from prometheus_client import CollectorRegistry

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.control.reports import read_overview
from penstock.platform.host.host_metrics import HostMetrics
from penstock.platform.host.lag_watch import LagWatch, PartitionPositions
from penstock.platform.host.observed_control import ObservedControl

BATCH = BatchRecord("s", 0, 1, "data", 5_000, 4_000, (PartitionAccount("t", 0, 0, 10, 10, 10, 0, 0, 0),))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    with closing(open_control_store(f"sqlite:///{tmp_path}/control.db")) as opened:
        yield opened


@pytest.fixture
def control(store: ControlStore, registry: CollectorRegistry) -> ObservedControl:
    return ObservedControl(store, HostMetrics(registry))


def look(control: ObservedControl, end: int, at_ms: int = 0) -> None:
    """Look as a host does, while the topic's only partition ends there."""
    LagWatch(
        lambda: control.read_positions, lambda places: dict.fromkeys(places, end), showing(control, at_ms)
    ).poll()


def showing(control: ObservedControl, at_ms: int = 0) -> Callable[[Mapping[str, int]], None]:
    return lambda waits: control.show_lag(waits, at_ms)


def waits(store: ControlStore) -> tuple[int, int] | None:
    """How many records wait for a stream that commits nothing, and since when, as the store knows it."""
    [found] = read_overview(store)
    return found.backlog and (found.backlog.records, found.backlog.since_ms)


def shown(registry: CollectorRegistry, name: str = "penstock_lag_records") -> float | None:
    return registry.get_sample_value(name, {"stream": "s"})


def test_of_a_stream_that_commits_nothing_more_it_is_seen_that_records_wait(
    control: ObservedControl, registry: CollectorRegistry
) -> None:
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    control.record_batch(BATCH)
    assert shown(registry) == 0
    look(control, 25)
    assert shown(registry) == 15
    control.report_health(StreamHealth("s", StreamState.RETRYING, "no broker", 0))
    look(control, 30)
    assert shown(registry) == 20


@pytest.mark.parametrize("state", ["paused", "drained", "stopped", "failed"])
def test_what_waits_for_a_stream_at_rest_is_no_news(
    control: ObservedControl, registry: CollectorRegistry, state: str
) -> None:
    control.record_batch(BATCH)
    control.report_health(StreamHealth("s", StreamState(state), "", 0))
    look(control, 25)
    assert shown(registry) == 0


def test_nothing_is_shown_of_a_stream_that_was_lost_meanwhile(
    control: ObservedControl, registry: CollectorRegistry
) -> None:
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    control.record_batch(BATCH)

    def lose(places: Collection[tuple[str, int]]) -> PartitionPositions:
        control.report_lost(StreamHealth("s", StreamState.FENCED, "", 0))
        return dict.fromkeys(places, 25)

    LagWatch(lambda: control.read_positions, lose, showing(control)).poll()
    assert shown(registry) is None


def test_a_stream_is_shown_as_it_stood_before_its_first_batch_here(
    store: ControlStore, control: ObservedControl, registry: CollectorRegistry
) -> None:
    store.record_batch(BATCH)
    assert control.read_last_batch("s") == BATCH
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    assert shown(registry, "penstock_last_batch_timestamp_seconds") == 5, (
        "a first batch that hangs is seen by it"
    )
    look(control, 25)
    assert shown(registry) == 15


def test_a_broker_that_is_away_leaves_what_was_shown(
    control: ObservedControl, registry: CollectorRegistry
) -> None:
    def away(_: Collection[tuple[str, int]]) -> PartitionPositions:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    control.record_batch(BATCH)
    look(control, 25)
    LagWatch(lambda: control.read_positions, away, showing(control)).poll()
    assert shown(registry) == 15


def test_the_store_knows_since_when_records_wait_for_a_stream_that_commits_nothing(
    store: ControlStore, control: ObservedControl
) -> None:
    store.acquire_lease("s", "host", 0, 60_000)
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0, epoch=1))
    control.record_batch(BATCH)
    look(control, 25, at_ms=20_000)
    assert waits(store) is None, "a batch may be at work on them"
    look(control, 30, at_ms=35_000)
    assert waits(store) == (20, 20_000)
    control.report_health(StreamHealth("s", StreamState.RETRYING, "no disk", 0, epoch=1))
    look(control, 31, at_ms=50_000)
    assert waits(store) == (21, 20_000)
    accounts = (PartitionAccount("t", 0, 10, 31, 21, 21, 0, 0, 0),)
    control.record_batch(replace(BATCH, batch_id=1, accounts=accounts))
    assert waits(store) is None
    look(control, 32, at_ms=65_000)
    look(control, 31, at_ms=80_000)
    assert waits(store) is None


def test_a_stream_that_was_paused_has_not_waited_meanwhile(
    store: ControlStore, control: ObservedControl
) -> None:
    store.acquire_lease("s", "host", 0, 60_000)
    control.record_batch(BATCH)
    for at_ms, state in enumerate(("running", "running", "paused", "running", "running")):
        control.report_health(StreamHealth("s", StreamState(state), "", 0, epoch=1))
        look(control, 25, at_ms)
    assert waits(store) == (15, 3)


def test_what_waited_by_the_word_of_a_host_that_was_taken_over_says_nothing(
    store: ControlStore, control: ObservedControl, registry: CollectorRegistry
) -> None:
    store.acquire_lease("s", "host", 0, 1_000)
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0, epoch=1))
    control.record_batch(BATCH)
    look(control, 25, at_ms=500)
    look(control, 25, at_ms=900)
    store.acquire_lease("s", "other", 2_000, 60_000)
    assert waits(store) is None
    other = ObservedControl(store, HostMetrics(CollectorRegistry()))
    other.read_last_batch("s")
    other.report_health(StreamHealth("s", StreamState.RUNNING, "", 0, epoch=2))
    look(other, 25, at_ms=3_000)
    look(other, 25, at_ms=18_000)
    look(control, 40, at_ms=20_000)
    assert waits(store) == (15, 3_000)
