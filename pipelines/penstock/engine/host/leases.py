"""The leases of a host: kept alive by a heartbeat of their own, and known to be lost without asking anybody."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from penstock.engine.host.control import HostControl, Lease

log = logging.getLogger(__name__)

Clock = Callable[[], int]


@dataclass(frozen=True)
class HeldLease:
    """A lease, and until when it holds by this machine's own clock."""

    lease: Lease
    valid_until_ms: int


class LeaseKeeper:
    """Which streams this host may write. Safe to use from several threads.

    A lease is believed for as long as the last renewal promised, by a clock that goes on while the process is
    stopped: a host that was asleep past that time holds nothing when it wakes, before it has asked.
    """

    def __init__(self, control: HostControl, holder: str, clock: Clock, ttl_ms: int) -> None:
        self._control = control
        self._holder = holder
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._held_leases: dict[str, HeldLease] = {}
        self._lock = threading.Lock()

    def acquire(self, stream: str) -> Lease | None:
        """Take a stream's lease; None while another host has it."""
        now_ms = self._clock()
        lease = self._control.acquire_lease(stream, self._holder, now_ms, self._ttl_ms)
        if lease is not None:
            self._store_lease(lease, now_ms)
        return lease

    def is_held(self, lease: Lease) -> bool:
        """Whether the lease is this host's, this moment."""
        with self._lock:
            held_lease = self._held_leases.get(lease.stream)
        return (
            held_lease is not None
            and held_lease.lease.epoch == lease.epoch
            and self._clock() < held_lease.valid_until_ms
        )

    def renew(self) -> None:
        """Prolong every lease; forget those that were taken over."""
        with self._lock:
            held_leases = list(self._held_leases.values())
        for held_lease in held_leases:
            now_ms = self._clock()
            if self._control.renew_lease(held_lease.lease, now_ms, self._ttl_ms):
                self._extend_lease(held_lease.lease, now_ms)
            else:
                self._drop_lease(held_lease.lease)

    def release(self, lease: Lease) -> None:
        """Give a lease back; it is not held any more. Where the store does not hear of it, it runs out there."""
        self._drop_lease(lease)
        try:
            self._control.release_lease(lease)
        except Exception:
            log.exception("the lease of %s could not be given back, and runs out", lease.stream)

    def _store_lease(self, lease: Lease, now_ms: int) -> None:
        with self._lock:
            self._held_leases[lease.stream] = HeldLease(lease, now_ms + self._ttl_ms)

    def _extend_lease(self, lease: Lease, now_ms: int) -> None:
        with self._lock:
            held_lease = self._held_leases.get(lease.stream)
            # It may have been given back meanwhile, and the stream be held under a higher epoch.
            if held_lease is not None and held_lease.lease.epoch == lease.epoch:
                self._held_leases[lease.stream] = HeldLease(lease, now_ms + self._ttl_ms)

    def _drop_lease(self, lease: Lease) -> None:
        with self._lock:
            held_lease = self._held_leases.get(lease.stream)
            if held_lease is not None and held_lease.lease.epoch == lease.epoch:
                del self._held_leases[lease.stream]
