"""The current lag of streams, also between their batches."""

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

ACCOUNT = PartitionAccount("t", 0, 0, 10, 10, 10, 0, 0, 0)
BATCH = BatchRecord("s", 0, 1, "data", 5_000, 4_000, (ACCOUNT,), committed_at_ms=5_000)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    with closing(open_control_store(f"sqlite:///{tmp_path}/control.db")) as opened:
        yield opened


@pytest.fixture
def control(store: ControlStore, registry: CollectorRegistry) -> ObservedControl:
    return ObservedControl(store, HostMetrics(registry))


def poll_lag(control: ObservedControl, end: int, at_ms: int = 0) -> None:
    """Poll once, with a topic whose only partition ends at the given offset."""
    LagWatch(
        lambda: control.read_positions,
        lambda partitions: dict.fromkeys(partitions, end),
        lag_callback(control, at_ms),
    ).poll()


def lag_callback(control: ObservedControl, at_ms: int = 0) -> Callable[[Mapping[str, int]], None]:
    return lambda lag: control.show_lag(lag, at_ms)


def read_backlog(store: ControlStore) -> tuple[int, int] | None:
    """Return the backlog of the stream in the store: its records and its start."""
    [overview] = read_overview(store)
    return overview.backlog and (overview.backlog.records, overview.backlog.since_ms)


def read_metric(registry: CollectorRegistry, name: str = "penstock_consumer_lag_records") -> float | None:
    return registry.get_sample_value(name, {"stream": "s"})


def test_the_lag_of_a_stream_without_batches_grows(
    control: ObservedControl, registry: CollectorRegistry
) -> None:
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    control.record_batch(BATCH)
    assert read_metric(registry) == 0
    poll_lag(control, 25)
    assert read_metric(registry) == 15
    control.report_health(StreamHealth("s", StreamState.RETRYING, "no broker", 0))
    poll_lag(control, 30)
    assert read_metric(registry) == 20


@pytest.mark.parametrize("state", ["paused", "drained", "stopped", "failed"])
def test_the_lag_of_a_stopped_stream_is_not_updated(
    control: ObservedControl, registry: CollectorRegistry, state: str
) -> None:
    control.record_batch(BATCH)
    control.report_health(StreamHealth("s", StreamState(state), "", 0))
    poll_lag(control, 25)
    assert read_metric(registry) == 0


def test_a_lost_stream_shows_no_lag(control: ObservedControl, registry: CollectorRegistry) -> None:
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    control.record_batch(BATCH)

    def lose_stream(partitions: Collection[tuple[str, int]]) -> PartitionPositions:
        control.report_lost(StreamHealth("s", StreamState.FENCED, "", 0))
        return dict.fromkeys(partitions, 25)

    LagWatch(lambda: control.read_positions, lose_stream, lag_callback(control)).poll()
    assert read_metric(registry) is None


def test_a_stream_shows_its_last_batch_before_its_first_one_here(
    store: ControlStore, control: ObservedControl, registry: CollectorRegistry
) -> None:
    store.record_batch(BATCH)
    assert control.read_last_batch("s") == BATCH
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    assert read_metric(registry, "penstock_last_batch_timestamp_seconds") == 5, (
        "so that a hanging first batch is visible"
    )
    poll_lag(control, 25)
    assert read_metric(registry) == 15


def test_an_unreachable_broker_leaves_the_lag_unchanged(
    control: ObservedControl, registry: CollectorRegistry
) -> None:
    def fail(_: Collection[tuple[str, int]]) -> PartitionPositions:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0))
    control.record_batch(BATCH)
    poll_lag(control, 25)
    LagWatch(lambda: control.read_positions, fail, lag_callback(control)).poll()
    assert read_metric(registry) == 15


def test_the_store_has_the_start_of_a_backlog(store: ControlStore, control: ObservedControl) -> None:
    store.acquire_lease("s", "host", 0, 60_000)
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0, epoch=1))
    control.record_batch(BATCH)
    poll_lag(control, 25, at_ms=20_000)
    assert read_backlog(store) is None, "a batch may be processing them"
    poll_lag(control, 30, at_ms=35_000)
    assert read_backlog(store) == (20, 20_000)
    control.report_health(StreamHealth("s", StreamState.RETRYING, "no disk", 0, epoch=1))
    poll_lag(control, 31, at_ms=50_000)
    assert read_backlog(store) == (21, 20_000)
    accounts = (PartitionAccount("t", 0, 10, 31, 21, 21, 0, 0, 0),)
    control.record_batch(replace(BATCH, batch_id=1, accounts=accounts))
    assert read_backlog(store) is None
    poll_lag(control, 32, at_ms=65_000)
    poll_lag(control, 31, at_ms=80_000)
    assert read_backlog(store) is None


def test_a_pause_restarts_the_backlog(store: ControlStore, control: ObservedControl) -> None:
    store.acquire_lease("s", "host", 0, 60_000)
    control.record_batch(BATCH)
    for at_ms, state in enumerate(("running", "running", "paused", "running", "running")):
        control.report_health(StreamHealth("s", StreamState(state), "", 0, epoch=1))
        poll_lag(control, 25, at_ms)
    assert read_backlog(store) == (15, 3)


def test_the_backlog_of_a_lost_host_is_ignored(
    store: ControlStore, control: ObservedControl, registry: CollectorRegistry
) -> None:
    store.acquire_lease("s", "host", 0, 1_000)
    control.report_health(StreamHealth("s", StreamState.RUNNING, "", 0, epoch=1))
    control.record_batch(BATCH)
    poll_lag(control, 25, at_ms=500)
    poll_lag(control, 25, at_ms=900)
    store.acquire_lease("s", "other", 2_000, 60_000)
    assert read_backlog(store) is None
    other = ObservedControl(store, HostMetrics(CollectorRegistry()))
    other.read_last_batch("s")
    other.report_health(StreamHealth("s", StreamState.RUNNING, "", 0, epoch=2))
    poll_lag(other, 25, at_ms=3_000)
    poll_lag(other, 25, at_ms=18_000)
    poll_lag(control, 40, at_ms=20_000)
    assert read_backlog(store) == (15, 3_000)
