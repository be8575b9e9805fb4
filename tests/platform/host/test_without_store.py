"""A control store that goes away while a stream commits: the stream goes on, and the store learns of it later."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import pytest
from sqlalchemy.exc import OperationalError
from tests.pipelines.engine.batch.stored import Bench
from tests.pipelines.engine.batch.test_fence import BATCHES, PLAN, TABLES, undisturbed
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


class Fed:
    """A stream whose batches a test feeds."""

    def __init__(self, bench: Bench, right: WriteFence, told: Callable[[BatchOutcome], None]) -> None:
        self._bench = bench
        self.right = right
        self._told = told
        self.engine: BatchEngine

    def read_outcomes_after(self, after: int) -> Iterator[BatchOutcome]:
        return read_retained_outcomes(self._bench.folder / "stream" / "journal", after)

    def start(self, *, reading: bool = True) -> None:
        self.engine = self._bench.open(self.right.epoch, self.right.is_held, told=self._told)

    def failure(self) -> BaseException | None:
        return None

    def describe_current_batch(self) -> str:
        return self.engine.unfinished_batch

    def pause(self) -> None:
        """It reads what it is fed."""

    resume = drain = stop = pause


class Clock:
    """Goes as the wall's, and ahead of it by what a test says."""

    ahead_ms = 0

    def __call__(self) -> int:
        return now_ms() + self.ahead_ms


@contextmanager
def hosted(bench: Bench, store: ControlStore, clock: Callable[[], int] = now_ms) -> Iterator[Fed]:
    """A host with that stream, until the context is left."""
    begun: list[Fed] = []

    def make(_name: str, right: WriteFence, told: Callable[[BatchOutcome], None]) -> Fed:
        begun.append(Fed(bench, right, told))
        return begun[-1]

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
    working = threading.Thread(target=host.run, args=(stop,))
    working.start()
    try:
        wait_until(lambda: said(store) == "running", 60, "the stream to run")
        yield begun[-1]
    finally:
        stop.set()
        working.join(60)
        assert not working.is_alive(), "the host ends, whatever its store does"


@pytest.fixture
def away(postgres: Postgres) -> Iterator[ControlStore]:
    """A store that can be gone, and that says so at once."""
    yield from asked_for(postgres.database(f"away_{uuid4().hex}"))


@pytest.fixture
def hanging(postgres: Postgres) -> Iterator[ControlStore]:
    """A store that can be there and not answer; nobody waits for it longer than a second or two."""
    address = f"{postgres.database(f'hangs_{uuid4().hex}')}?connect_timeout=2"
    yield from asked_for(address, query_timeout_s=1)


def asked_for(address: str, **options: float) -> Iterator[ControlStore]:
    """A store in which the stream is asked for; whoever still tells it something at the end may finish."""
    store = open_control_store(address, **options)
    store.set_desired_state(STREAM, DesiredRunState.RUNNING, 0)
    yield store
    pool = cast("QueuePool", store.engine.pool)
    wait_until(lambda: pool.checkedout() == 0, 60, "the store to be left alone")
    store.close()


@contextmanager
def at_work(bench: Bench, store: ControlStore, clock: Callable[[], int] = now_ms) -> Iterator[Fed]:
    """A host that has told of the stream's first batch."""
    with hosted(bench, store, clock) as stream:
        bench.feed(stream.engine, BATCHES[0])
        until_told(store, 0)
        yield stream


def until_told(store: ControlStore, *batches: int) -> None:
    """Wait until the store knows these batches, in this order, and no other."""
    wait_until(lambda: told(store) == list(batches), 60, f"batches {batches} to be told")


def said(store: ControlStore) -> str:
    told = store.read_health(STREAM)
    return told.state if told else ""


def told(store: ControlStore) -> list[int]:
    return [record.batch_id for record in read_batch_history(store, STREAM)]


def test_a_stream_commits_while_its_store_is_away_and_the_store_learns_of_it(
    postgres: Postgres, away: ControlStore, tmp_path: Path
) -> None:
    bench = Bench(PLAN, tmp_path / "stream")
    with at_work(bench, away) as stream:
        postgres.stop()
        try:
            for batch in BATCHES[1:4]:
                bench.feed(stream.engine, batch)
        finally:
            postgres.start()
        until_told(away, 0, 1, 2, 3)
        bench.feed(stream.engine, BATCHES[4])
    until_told(away, 0, 1, 2, 3, 4)
    assert {table: bench.rows(table) for table in TABLES} == undisturbed(tmp_path / "calm")
    assert said(away) == "stopped"


def test_a_stream_commits_while_its_store_hangs_and_the_store_learns_of_it(
    postgres: Postgres, hanging: ControlStore, tmp_path: Path
) -> None:
    bench = Bench(PLAN, tmp_path / "stream")
    with at_work(bench, hanging) as stream:
        with postgres.asleep():
            for batch in BATCHES[1:4]:
                bench.feed(stream.engine, batch)
            with pytest.raises(OperationalError, match=r"did not answer within 1 s|timeout expired"):
                hanging.read_desired_states()
        until_told(hanging, 0, 1, 2, 3)
        bench.feed(stream.engine, BATCHES[4])
    until_told(hanging, 0, 1, 2, 3, 4)
    assert {table: bench.rows(table) for table in TABLES} == undisturbed(tmp_path / "calm")


def test_a_host_whose_store_hangs_past_its_lease_writes_nothing_more_and_can_be_ended(
    postgres: Postgres, hanging: ControlStore, tmp_path: Path
) -> None:
    bench, clock = Bench(PLAN, tmp_path), Clock()
    with ExitStack() as slept, at_work(bench, hanging, clock) as stream:
        slept.enter_context(postgres.asleep())
        assert stream.right.is_held(), "as long as its lease"
        clock.ahead_ms = 60_000
        assert not stream.right.is_held()
        with pytest.raises(WriterFencedError):
            bench.feed(stream.engine, BATCHES[1])
    wait_until(lambda: said(hanging) == "stopped", 60, "the store, awake, to learn how it ended")
    assert told(hanging) == [0]


def test_a_host_that_ended_while_the_store_was_away_leaves_the_telling_to_the_next(
    away: ControlStore, tmp_path: Path
) -> None:
    bench = Bench(PLAN, tmp_path)
    with at_work(bench, away):
        pass
    alone = bench.open(epoch=2)  # a host that is killed before it tells
    for batch in BATCHES[1:4]:
        bench.feed(alone, batch)
    lease = away.read_lease(STREAM)
    assert lease is not None
    away.release_lease(lease)
    with hosted(bench, away):
        until_told(away, 0, 1, 2, 3)
