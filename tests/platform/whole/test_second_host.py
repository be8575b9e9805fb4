"""Two hosts for one stream: one writes, the other takes over when the lease expires."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest
from sqlalchemy import select
from tests.patience import PATIENCE_S
from tests.platform.whole.scratch_stack import PENSTOCK, ScratchStack, poll_until
from tests.platform.whole.stack_processes import check_counted_once
from tests.platform.whole.table_comparison import wait_for_balance

from penstock.engine.host.control import Lease
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.control.tables import batches

pytestmark = pytest.mark.whole


def test_a_second_host_takes_over_and_fences_a_paused_one(
    running: ScratchStack,
) -> None:
    store = open_control_store(running.control_url)
    first = read_lease(store)
    with second_host(running) as read_log:
        poll_until(
            lambda: f"Waiting for lease (holder={first.holder})" in read_log(),
            PATIENCE_S,
            "the second host to wait",
        )
        with suspended(running.pids()["host"]):
            second = poll_until(
                lambda: find_lease_of_another(store, first), PATIENCE_S, "the second host to take over"
            )
            # The first host now reports what it had committed before it was paused, under its epoch.
            poll_until(
                lambda: read_last_epoch(store) >= second.epoch, PATIENCE_S, "a batch of the second host"
            )
            last_paused_batch = running.batch()
        poll_until(
            lambda: running.batch() > last_paused_batch + 5,
            PATIENCE_S,
            "more batches after the first host was resumed",
        )
        assert min(read_epochs(store, after=last_paused_batch)) >= second.epoch > first.epoch
        # On a slow machine the second may lose its lease: either host then takes it with a higher epoch.
        now = read_lease(store)
        assert now.holder == second.holder or now.epoch > second.epoch, read_log()
    returned = poll_until(
        lambda: find_lease_of_another(store, second), PATIENCE_S, "the first host to take over again"
    )
    poll_until(lambda: read_last_epoch(store) >= returned.epoch, PATIENCE_S, "a batch of the first host")
    first_returned_batch = running.batch()
    poll_until(lambda: running.batch() > first_returned_batch, PATIENCE_S, "more batches")
    assert min(read_epochs(store, after=first_returned_batch)) >= returned.epoch > second.epoch
    store.close()
    with running.without_feed():
        check_counted_once(running)
        wait_for_balance(running)


def read_epochs(store: ControlStore, after: int) -> set[int]:
    """Return the epochs of the batches after a given one."""
    condition = batches.c.stream == "sensor_minute", batches.c.batch_id > after
    with store.engine.connect() as connection:
        return set(connection.execute(select(batches.c.epoch).where(*condition)).scalars())


def read_last_epoch(store: ControlStore) -> int:
    """Return the epoch of the newest batch."""
    last = store.read_last_batch("sensor_minute")
    return last.epoch if last else 0


def read_lease(store: ControlStore) -> Lease:
    """Return the current lease of the stream."""
    lease = store.read_lease("sensor_minute")
    assert lease is not None
    return lease


def find_lease_of_another(store: ControlStore, before: Lease) -> Lease | None:
    """Return the lease if another host has it."""
    lease = read_lease(store)
    return lease if lease.holder != before.holder else None


@contextmanager
def second_host(stack: ScratchStack) -> Iterator[Callable[[], str]]:
    """Run a second host, and drain it at the end; yield a function that reads its log."""
    log = stack.home.parent / "second-host.log"
    environment = {**stack.environment, "PENSTOCK_HOST__METRICS_PORT": "0"}
    with log.open("w") as out:
        host = subprocess.Popen([PENSTOCK, "host", "run"], env=environment, stdout=out, stderr=out)
    try:
        yield lambda: log.read_text("utf-8")
        host.terminate()
        assert host.wait(PATIENCE_S) == 0, log.read_text("utf-8")[-3000:]
    finally:
        host.kill()
        host.wait()


@contextmanager
def suspended(pid: int) -> Iterator[None]:
    """Suspend a process with its children inside of the context."""
    process = psutil.Process(pid)
    processes = [process, *process.children(recursive=True)]
    for member in processes:
        member.suspend()
    try:
        yield
    finally:
        for member in processes:
            member.resume()
