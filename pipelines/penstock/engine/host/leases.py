"""The leases that a host holds. A heartbeat renews them; their loss is known without asking the store."""

import logging
import threading
from dataclasses import dataclass

from penstock.core.clock import Clock
from penstock.engine.host.control import HostControl, Lease

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HeldLease:
    """A lease, and until when it is valid by this machine's clock."""

    lease: Lease
    valid_until_ms: int


class LeaseKeeper:
    """The leases of this host. Safe to use from several threads.

    A lease is valid for as long as the last renewal promised, by a clock that keeps running while the process is
    suspended. A host that slept longer than that holds nothing when it wakes, before it asks the store.
    """

    def __init__(self, control: HostControl, holder: str, clock: Clock, ttl_ms: int) -> None:
        self._control = control
        self._holder = holder
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._held_leases: dict[str, HeldLease] = {}
        self._lock = threading.Lock()

    def acquire(self, stream: str) -> Lease | None:
        """Take a stream's lease; return None if another host has it."""
        now_ms = self._clock()
        lease = self._control.acquire_lease(stream, self._holder, now_ms, self._ttl_ms)
        if lease is not None:
            self._store_lease(lease, now_ms)
        return lease

    def is_held(self, lease: Lease) -> bool:
        """Whether this host holds the lease now."""
        with self._lock:
            held_lease = self._held_leases.get(lease.stream)
        return (
            held_lease is not None
            and held_lease.lease.epoch == lease.epoch
            and self._clock() < held_lease.valid_until_ms
        )

    def renew(self) -> None:
        """Renew every lease; drop those that another host took over."""
        with self._lock:
            held_leases = list(self._held_leases.values())
        for held_lease in held_leases:
            now_ms = self._clock()
            if self._control.renew_lease(held_lease.lease, now_ms, self._ttl_ms):
                self._extend_lease(held_lease.lease, now_ms)
            else:
                self._drop_lease(held_lease.lease)

    def release(self, lease: Lease) -> None:
        """Release a lease. If the store does not answer, the lease expires there."""
        self._drop_lease(lease)
        try:
            self._control.release_lease(lease)
        except Exception:
            log.exception("Lease release failed; it expires by itself (stream=%s)", lease.stream)

    def _store_lease(self, lease: Lease, now_ms: int) -> None:
        with self._lock:
            self._held_leases[lease.stream] = HeldLease(lease, now_ms + self._ttl_ms)

    def _extend_lease(self, lease: Lease, now_ms: int) -> None:
        with self._lock:
            held_lease = self._held_leases.get(lease.stream)
            # It may be released by now, and the stream held under a higher epoch.
            if held_lease is not None and held_lease.lease.epoch == lease.epoch:
                self._held_leases[lease.stream] = HeldLease(lease, now_ms + self._ttl_ms)

    def _drop_lease(self, lease: Lease) -> None:
        with self._lock:
            held_lease = self._held_leases.get(lease.stream)
            if held_lease is not None and held_lease.lease.epoch == lease.epoch:
                del self._held_leases[lease.stream]
