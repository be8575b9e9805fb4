"""Two hosts for one stream: one writes, the other waits, and who slept through its lease finds it taken."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest
from sqlalchemy import select
from tests.platform.whole.books import balanced
from tests.platform.whole.killing import counted_once
from tests.platform.whole.stack import PENSTOCK, ScratchStack, until

from penstock.engine.host.control import Lease
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.control.tables import batches

pytestmark = [pytest.mark.whole, pytest.mark.timeout(400)]


def test_a_second_host_waits_and_one_that_slept_through_its_lease_writes_nothing_more(
    running: ScratchStack,
) -> None:
    store = open_control_store(running.control_url)
    first = lease_of(store)
    with second_host(running) as said:
        until(lambda: f"Waiting for lease (holder={first.holder})" in said(), 90, "the second host to wait")
        with suspended(running.pids()["host"]):
            second = until(lambda: held_by_another(store, first), 90, "the second host to take over")
            # What the first host had decided, and not told before it slept, is told now, under its epoch.
            until(lambda: last_epoch(store) >= second.epoch, 60, "a batch of the second host")
            asleep_until = running.batch()
        until(lambda: running.batch() > asleep_until + 5, 60, "more of them, after the first one woke")
        assert min(epochs(store, after=asleep_until)) >= second.epoch > first.epoch
        # A slow machine may keep the second from renewing its lease: either takes it then, under a higher epoch.
        now = lease_of(store)
        assert now.holder == second.holder or now.epoch > second.epoch, said()
    back = until(lambda: held_by_another(store, second), 60, "the first host to have it back")
    until(lambda: last_epoch(store) >= back.epoch, 60, "a batch of the first host")
    back_since = running.batch()
    until(lambda: running.batch() > back_since, 60, "more of them")
    assert min(epochs(store, after=back_since)) >= back.epoch > second.epoch
    store.close()
    with running.without_feed():
        counted_once(running)
        balanced(running)


def epochs(store: ControlStore, after: int) -> set[int]:
    """By whose leases the batches after one were written."""
    ours = batches.c.stream == "sensor_minute", batches.c.batch_id > after
    with store.engine.connect() as connection:
        return set(connection.execute(select(batches.c.epoch).where(*ours)).scalars())


def last_epoch(store: ControlStore) -> int:
    """By whose lease the newest batch was written."""
    last = store.read_last_batch("sensor_minute")
    return last.epoch if last else 0


def lease_of(store: ControlStore) -> Lease:
    """Who may write the stream."""
    lease = store.read_lease("sensor_minute")
    assert lease is not None
    return lease


def held_by_another(store: ControlStore, before: Lease) -> Lease | None:
    """The lease, where another host than before has it."""
    lease = lease_of(store)
    return lease if lease.holder != before.holder else None


@contextmanager
def second_host(stack: ScratchStack) -> Iterator[Callable[[], str]]:
    """Another host beside the stack's, started on purpose and drained at the end; yields what reads its log."""
    log = stack.home.parent / "second-host.log"
    environment = {**stack.environment, "PENSTOCK_HOST__METRICS_PORT": "0"}
    with log.open("w") as out:
        host = subprocess.Popen([PENSTOCK, "host", "run"], env=environment, stdout=out, stderr=out)
    try:
        yield lambda: log.read_text("utf-8")
        host.terminate()
        assert host.wait(60) == 0, log.read_text("utf-8")[-3000:]
    finally:
        host.kill()
        host.wait()


@contextmanager
def suspended(pid: int) -> Iterator[None]:
    """A process, with all that it has started, stopped for a while: its clock goes on, it does not."""
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    for one in family:
        one.suspend()
    try:
        yield
    finally:
        for one in family:
            one.resume()
