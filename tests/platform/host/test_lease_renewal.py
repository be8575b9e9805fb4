"""Leases that change while they are renewed."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.engine.host.control import Lease
from penstock.engine.host.leases import LeaseKeeper
from penstock.platform.control import ControlStore, open_control_store


class InterruptingStore(ControlStore):
    """A store that calls a function during a renewal."""

    during_renewal: Callable[[], None] = staticmethod(lambda: None)

    def renew_lease(self, lease: Lease, now_ms: int, ttl_ms: int) -> bool:
        renewed = super().renew_lease(lease, now_ms, ttl_ms)
        self.during_renewal()
        return renewed


@pytest.fixture
def store(tmp_path: Path) -> Iterator[InterruptingStore]:
    with closing(open_control_store(f"sqlite:///{tmp_path}/control.db")) as opened:
        yield InterruptingStore(opened.engine)


def test_a_lease_that_is_released_while_it_is_renewed_is_not_held(store: InterruptingStore) -> None:
    leases = LeaseKeeper(store, "host", lambda: 0, 1_000)
    lease = leases.acquire("s")
    assert lease is not None
    store.during_renewal = lambda: leases.release(lease)
    leases.renew()
    assert not leases.is_held(lease)
    assert store.acquire_lease("s", "other", 0, 1_000) is not None


def test_a_stream_that_restarts_while_its_lease_is_renewed_is_held(store: InterruptingStore) -> None:
    leases = LeaseKeeper(store, "host", lambda: 0, 1_000)
    first, acquired = leases.acquire("s"), list[Lease | None]()
    assert first is not None

    def restart() -> None:
        leases.release(first)
        acquired.append(leases.acquire("s"))

    store.during_renewal = restart
    leases.renew()
    [lease] = acquired
    assert lease is not None
    assert (leases.is_held(lease), leases.is_held(first)) == (True, False)
