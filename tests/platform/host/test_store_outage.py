"""Outages of the control store: streams keep committing, and report their batches later."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import pytest
from sqlalchemy.exc import OperationalError
from tests.patience import PATIENCE_S
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_write_fence import BATCHES, PLAN, TABLES, run_undisturbed
from tests.platform.conftest import Postgres

from penstock.core.clock import now_ms
from penstock.core.settings import DurationMs
from penstock.core.waiting import wait_until
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.journal import read_retained_outcomes
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import WriterFencedError
from penstock.engine.host.control import DesiredRunState
from penstock.engine.host.stream_host import StreamHost
from penstock.engine.host_settings import HostSettings
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.control.reports import read_batch_history

if TYPE_CHECKING:
    from sqlalchemy import QueuePool

STREAM = PLAN.name


class FedStream:
    """A stream whose batches a test feeds."""

    def __init__(
        self, bench: Bench, fence: WriteFence, report_outcome: Callable[[BatchOutcome], None]
    ) -> None:
        self._bench = bench
        self.fence = fence
        self._report_outcome = report_outcome
        self.engine: BatchEngine

    def read_outcomes_after(self, after: int) -> Sequence[BatchOutcome]:
        return read_retained_outcomes(self._bench.folder / "stream" / "journal", after)

    def start(self, *, reading: bool = True) -> None:
        self.engine = self._bench.open(
            self.fence.epoch, self.fence.is_held, report_outcome=self._report_outcome
        )

    def failure(self) -> BaseException | None:
        return None

    def describe_current_batch(self) -> str:
        return self.engine.unfinished_batch

    def pause(self) -> None:
        """Do nothing: the test feeds the batches."""

    resume = drain = stop = pause


class Clock:
    """The wall clock plus an offset."""

    ahead_ms = 0

    def __call__(self) -> int:
        return now_ms() + self.ahead_ms


@contextmanager
def run_host(bench: Bench, store: ControlStore, clock: Callable[[], int] = now_ms) -> Iterator[FedStream]:
    """Run a host with the stream until the context ends."""
    streams: list[FedStream] = []

    def make(_name: str, fence: WriteFence, report_outcome: Callable[[BatchOutcome], None]) -> FedStream:
        streams.append(FedStream(bench, fence, report_outcome))
        return streams[-1]

    host = StreamHost(
        "host",
        store,
        make,
        clock,
        is_spark_alive=lambda: True,
        settings=HostSettings(lease_timeout=DurationMs(60_000)),
        poll_interval_s=0.05,
    )
    stop = threading.Event()
    thread = threading.Thread(target=host.run, args=(stop,))
    thread.start()
    try:
        wait_until(lambda: read_state(store) == "running", PATIENCE_S, "the stream to run")
        yield streams[-1]
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive(), "the host ends without its store"


@pytest.fixture
def stoppable_store(postgres: Postgres) -> Iterator[ControlStore]:
    """A store whose server can be stopped."""
    yield from open_requested_store(postgres.database(f"away_{uuid4().hex}"))


@pytest.fixture
def hanging_store(postgres: Postgres) -> Iterator[ControlStore]:
    """A store whose server can hang, with short timeouts."""
    address = f"{postgres.database(f'hangs_{uuid4().hex}')}?connect_timeout=2"
    yield from open_requested_store(address, query_timeout_s=1)


def open_requested_store(address: str, **options: float) -> Iterator[ControlStore]:
    """Open a store in which the stream is requested; close it after the last report."""
    store = open_control_store(address, **options)
    store.set_desired_state(STREAM, DesiredRunState.RUNNING, 0)
    yield store
    pool = cast("QueuePool", store.engine.pool)
    wait_until(lambda: pool.checkedout() == 0, PATIENCE_S, "the store to be unused")
    store.close()


@contextmanager
def run_host_with_first_batch(
    bench: Bench, store: ControlStore, clock: Callable[[], int] = now_ms
) -> Iterator[FedStream]:
    """Run a host that has reported the first batch of the stream."""
    with run_host(bench, store, clock) as stream:
        bench.feed(stream.engine, BATCHES[0])
        wait_until_reported(store, 0)
        yield stream


def wait_until_reported(store: ControlStore, *batches: int) -> None:
    """Wait until the store has exactly these batches, in this order."""
    wait_until(
        lambda: list_reported_batches(store) == list(batches), PATIENCE_S, f"batches {batches} to be reported"
    )


def read_state(store: ControlStore) -> str:
    health = store.read_health(STREAM)
    return health.state if health else ""


def list_reported_batches(store: ControlStore) -> list[int]:
    return [record.batch_id for record in read_batch_history(store, STREAM)]


def test_a_stream_commits_during_an_outage_and_reports_later(
    postgres: Postgres, stoppable_store: ControlStore, tmp_path: Path
) -> None:
    bench = Bench(PLAN, tmp_path / "stream")
    with run_host_with_first_batch(bench, stoppable_store) as stream:
        postgres.stop()
        try:
            for batch in BATCHES[1:4]:
                bench.feed(stream.engine, batch)
        finally:
            postgres.start()
        wait_until_reported(stoppable_store, 0, 1, 2, 3)
        bench.feed(stream.engine, BATCHES[4])
    wait_until_reported(stoppable_store, 0, 1, 2, 3, 4)
    assert {table: bench.rows(table) for table in TABLES} == run_undisturbed(tmp_path / "undisturbed")
    assert read_state(stoppable_store) == "stopped"


def test_a_stream_commits_while_its_store_hangs_and_reports_later(
    postgres: Postgres, hanging_store: ControlStore, tmp_path: Path
) -> None:
    bench = Bench(PLAN, tmp_path / "stream")
    with run_host_with_first_batch(bench, hanging_store) as stream:
        with postgres.suspended():
            for batch in BATCHES[1:4]:
                bench.feed(stream.engine, batch)
            with pytest.raises(OperationalError, match=r"did not answer within 1 s|timeout expired"):
                hanging_store.read_desired_states()
        wait_until_reported(hanging_store, 0, 1, 2, 3)
        bench.feed(stream.engine, BATCHES[4])
    wait_until_reported(hanging_store, 0, 1, 2, 3, 4)
    assert {table: bench.rows(table) for table in TABLES} == run_undisturbed(tmp_path / "undisturbed")


def test_a_host_is_fenced_when_its_store_hangs_past_the_lease(
    postgres: Postgres, hanging_store: ControlStore, tmp_path: Path
) -> None:
    bench, clock = Bench(PLAN, tmp_path), Clock()
    with ExitStack() as suspension, run_host_with_first_batch(bench, hanging_store, clock) as stream:
        suspension.enter_context(postgres.suspended())
        assert stream.fence.is_held(), "until the lease expires"
        clock.ahead_ms = 60_000
        assert not stream.fence.is_held()
        with pytest.raises(WriterFencedError):
            bench.feed(stream.engine, BATCHES[1])
    wait_until(
        lambda: read_state(hanging_store) == "stopped", PATIENCE_S, "the store to have the final state"
    )
    assert list_reported_batches(hanging_store) == [0]


def test_the_next_host_reports_batches_of_a_killed_one(stoppable_store: ControlStore, tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    with run_host_with_first_batch(bench, stoppable_store):
        pass
    engine = bench.open(epoch=2)  # a host that is killed before it reports
    for batch in BATCHES[1:4]:
        bench.feed(engine, batch)
    lease = stoppable_store.read_lease(STREAM)
    assert lease is not None
    stoppable_store.release_lease(lease)
    with run_host(bench, stoppable_store):
        wait_until_reported(stoppable_store, 0, 1, 2, 3)
