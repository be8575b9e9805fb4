"""A heartbeat goes on beside everything else: what happens while the store answers it stays as it is."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.engine.host.control import Lease
from penstock.engine.host.leases import LeaseKeeper
from penstock.platform.control import ControlStore, open_control_store


class Slow(ControlStore):
    """A store of which an answer to a renewal takes a while, in which something happens."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def renew_lease(self, lease: Lease, now_ms: int, ttl_ms: int) -> bool:
        renewed = super().renew_lease(lease, now_ms, ttl_ms)
        self.meanwhile()
        return renewed


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Slow]:
    with closing(open_control_store(f"sqlite:///{tmp_path}/control.db")) as opened:
        yield Slow(opened.engine)


def test_a_lease_that_is_released_while_it_is_renewed_is_not_held(store: Slow) -> None:
    leases = LeaseKeeper(store, "host", lambda: 0, 1_000)
    lease = leases.acquire("s")
    assert lease is not None
    store.meanwhile = lambda: leases.release(lease)
    leases.renew()
    assert not leases.is_held(lease)
    assert store.acquire_lease("s", "other", 0, 1_000) is not None


def test_a_stream_that_restarts_while_its_lease_is_renewed_is_held(store: Slow) -> None:
    leases = LeaseKeeper(store, "host", lambda: 0, 1_000)
    before, taken = leases.acquire("s"), list[Lease | None]()
    assert before is not None

    def begin_anew() -> None:
        leases.release(before)
        taken.append(leases.acquire("s"))

    store.meanwhile = begin_anew
    leases.renew()
    [lease] = taken
    assert lease is not None
    assert (leases.is_held(lease), leases.is_held(before)) == (True, False)
