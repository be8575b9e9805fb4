"""The leases of a host: kept alive by a heartbeat of their own, and known to be lost without asking anybody."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from penstock.pipelines.host.control import Control, Lease

log = logging.getLogger(__name__)

Clock = Callable[[], int]


@dataclass(frozen=True)
class Held:
    """A lease, and until when it holds by this machine's own clock."""

    lease: Lease
    until_ms: int


class Leases:
    """Which streams this host may write. Safe to use from several threads.

    A lease is believed for as long as the last renewal promised, by a clock that goes on while the process is
    stopped: a host that was asleep past that time holds nothing when it wakes, before it has asked.
    """

    def __init__(self, control: Control, holder: str, clock: Clock, ttl_ms: int) -> None:
        self._control = control
        self._holder = holder
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()

    def acquire(self, stream: str) -> Lease | None:
        """Take a stream's lease; None while another host has it."""
        now = self._clock()
        lease = self._control.acquire(stream, self._holder, now, self._ttl_ms)
        if lease is not None:
            self._keep(lease, now)
        return lease

    def holds(self, lease: Lease) -> bool:
        """Whether the lease is this host's, this moment."""
        with self._lock:
            held = self._held.get(lease.stream)
        return held is not None and held.lease.epoch == lease.epoch and self._clock() < held.until_ms

    def renew(self) -> None:
        """Prolong every lease; forget those that were taken over."""
        with self._lock:
            held = list(self._held.values())
        for each in held:
            now = self._clock()
            if self._control.renew(each.lease, now, self._ttl_ms):
                self._prolong(each.lease, now)
            else:
                self._drop(each.lease)

    def release(self, lease: Lease) -> None:
        """Give a lease back; it is not held any more. Where the store does not hear of it, it runs out there."""
        self._drop(lease)
        try:
            self._control.release(lease)
        except Exception:
            log.exception("the lease of %s could not be given back, and runs out", lease.stream)

    def _keep(self, lease: Lease, now: int) -> None:
        with self._lock:
            self._held[lease.stream] = Held(lease, now + self._ttl_ms)

    def _prolong(self, lease: Lease, now: int) -> None:
        with self._lock:
            held = self._held.get(lease.stream)
            # It may have been given back meanwhile, and the stream be held under a higher epoch.
            if held is not None and held.lease.epoch == lease.epoch:
                self._held[lease.stream] = Held(lease, now + self._ttl_ms)

    def _drop(self, lease: Lease) -> None:
        with self._lock:
            held = self._held.get(lease.stream)
            if held is not None and held.lease.epoch == lease.epoch:
                del self._held[lease.stream]
