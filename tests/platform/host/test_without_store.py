"""A control store that goes away while a stream commits: the stream goes on, and the store learns of it later."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy.exc import OperationalError
from tests.pipelines.batch.stored import Bench
from tests.pipelines.batch.test_fence import BATCHES, PLAN, TABLES, undisturbed
from tests.platform.conftest import Postgres

from penstock.infra.waiting import wait_until
from penstock.pipelines.batch.engine import Engine
from penstock.pipelines.batch.journal import kept_outcomes
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.right import Right
from penstock.pipelines.errors import FencedError
from penstock.pipelines.host.control import Desired
from penstock.pipelines.host.host import Host
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore, open_control
from penstock.platform.control.reports import history

STREAM = PLAN.name


class Fed:
    """A stream whose batches a test feeds."""

    def __init__(self, bench: Bench, right: Right, told: Callable[[Outcome], None]) -> None:
        self._bench = bench
        self.right = right
        self._told = told
        self.engine: Engine

    def decided(self, after: int) -> Iterator[Outcome]:
        return kept_outcomes(self._bench.folder / "stream" / "journal", after)

    def start(self, *, reading: bool = True) -> None:
        self.engine = self._bench.open(self.right.epoch, self.right.holds, told=self._told)

    def failure(self) -> BaseException | None:
        return None

    def at(self) -> str:
        return self.engine.at

    def pause(self) -> None:
        """It reads what it is fed."""

    resume = drain = stop = pause


@contextmanager
def hosted(bench: Bench, store: ControlStore, lease_ms: int = 60_000) -> Iterator[Fed]:
    """A host with that stream, until the context is left."""
    begun: list[Fed] = []

    def make(_name: str, right: Right, told: Callable[[Outcome], None]) -> Fed:
        begun.append(Fed(bench, right, told))
        return begun[-1]

    host = Host("host", store, make, now_ms, alive=lambda: True, lease_ms=lease_ms, look_every_s=0.05)
    stop = threading.Event()
    working = threading.Thread(target=host.run, args=(stop,))
    working.start()
    try:
        wait_until(lambda: said(store) == "running", 30, "the stream to run")
        yield begun[-1]
    finally:
        stop.set()
        working.join(60)
        assert not working.is_alive(), "the host ends, whatever its store does"


def said(store: ControlStore) -> str:
    told = store.health(STREAM)
    return told.state if told else ""


def told(store: ControlStore) -> list[int]:
    return [record.batch_id for record in history(store, STREAM)]


def test_a_stream_commits_while_its_store_is_away_and_the_store_learns_of_it(
    postgres: Postgres, tmp_path: Path
) -> None:
    store = open_control(postgres.database(f"away_{uuid4().hex}"))
    store.desire(STREAM, Desired.RUNNING, 0)
    bench = Bench(PLAN, tmp_path / "stream")
    with hosted(bench, store) as stream:
        bench.feed(stream.engine, BATCHES[0])
        wait_until(lambda: told(store) == [0], 30, "the first batch to be told")
        postgres.stop()
        try:
            for batch in BATCHES[1:4]:
                bench.feed(stream.engine, batch)
        finally:
            postgres.start()
        wait_until(lambda: told(store) == [0, 1, 2, 3], 30, "the others to be told")
        bench.feed(stream.engine, BATCHES[4])
    assert told(store) == [0, 1, 2, 3, 4]
    assert {table: bench.rows(table) for table in TABLES} == undisturbed(tmp_path / "calm")
    assert said(store) == "stopped"
    store.close()


def test_a_stream_commits_while_its_store_hangs_and_the_store_learns_of_it(
    postgres: Postgres, tmp_path: Path
) -> None:
    store = open_control(f"{postgres.database(f'hangs_{uuid4().hex}')}?connect_timeout=2", patience_s=1)
    store.desire(STREAM, Desired.RUNNING, 0)
    bench = Bench(PLAN, tmp_path / "stream")
    with hosted(bench, store) as stream:
        bench.feed(stream.engine, BATCHES[0])
        wait_until(lambda: told(store) == [0], 30, "the first batch to be told")
        with postgres.asleep():
            for batch in BATCHES[1:4]:
                bench.feed(stream.engine, batch)
            with pytest.raises(OperationalError, match=r"did not answer within 1 s|timeout expired"):
                store.desired()
        wait_until(lambda: told(store) == [0, 1, 2, 3], 30, "the others to be told")
        bench.feed(stream.engine, BATCHES[4])
    assert told(store) == [0, 1, 2, 3, 4]
    assert {table: bench.rows(table) for table in TABLES} == undisturbed(tmp_path / "calm")
    store.close()


def test_a_host_whose_store_hangs_past_its_lease_writes_nothing_more_and_can_be_ended(
    postgres: Postgres, tmp_path: Path
) -> None:
    store = open_control(f"{postgres.database(f'hangs_{uuid4().hex}')}?connect_timeout=2", patience_s=1)
    store.desire(STREAM, Desired.RUNNING, 0)
    bench = Bench(PLAN, tmp_path)
    with ExitStack() as slept, hosted(bench, store, lease_ms=3_000) as stream:
        bench.feed(stream.engine, BATCHES[0])
        wait_until(lambda: told(store) == [0], 30, "the first batch to be told")
        slept.enter_context(postgres.asleep())
        wait_until(lambda: not stream.right.holds(), 30, "the lease to run out")
        with pytest.raises(FencedError):
            bench.feed(stream.engine, BATCHES[1])
    assert told(store) == [0]
    store.close()


def test_a_host_that_ended_while_the_store_was_away_leaves_the_telling_to_the_next(
    postgres: Postgres, tmp_path: Path
) -> None:
    store = open_control(postgres.database(f"away_{uuid4().hex}"))
    store.desire(STREAM, Desired.RUNNING, 0)
    bench = Bench(PLAN, tmp_path)
    with hosted(bench, store) as stream:
        bench.feed(stream.engine, BATCHES[0])
    alone = bench.open(epoch=2)  # a host that is killed before it tells
    for batch in BATCHES[1:4]:
        bench.feed(alone, batch)
    store.release(store.holder(STREAM))
    with hosted(bench, store):
        wait_until(lambda: told(store) == [0, 1, 2, 3], 30, "all of them to be told")
    store.close()
