"""The stack at a glance: its programs and its streams, for `penstock status`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.infra.processes import ProgramStatus
from penstock.pipelines.host.control import HostReport
from penstock.platform.control import control_exists, open_control
from penstock.platform.control.reports import StreamOverview, overview
from penstock.platform.settings import Settings
from penstock.platform.stack.manager import manager_of
from penstock.platform.standstill import Standstill, standstill

SILENT_MS = 60_000
"""A host that was not heard of for so long is not shown."""


@dataclass(frozen=True)
class View:
    """What runs, at one moment."""

    at_ms: int
    programs: Sequence[ProgramStatus]
    streams: Sequence[StreamOverview]
    hosts: Sequence[HostReport] = ()
    standstills: Mapping[str, Standstill] = field(default_factory=dict)
    """Streams that stand still for something, or that were left so by something that was killed."""

    @property
    def right(self) -> bool:
        """Whether everything that should run does."""
        ready = bool(self.programs) and all(program.ready for program in self.programs)
        return ready and all(self.stream_right(stream) for stream in self.streams)

    def stream_right(self, stream: StreamOverview) -> bool:
        """Whether a stream is as it is wanted; one that was left standing still is not."""
        if stream.stream in self.standstills:
            return False
        wanted = stream.desired is not None and stream.desired.held
        return wanted == self.held(stream)

    def held(self, stream: StreamOverview) -> bool:
        """Whether a host has the stream now."""
        return stream.lease is not None and stream.lease.expires_at_ms > self.at_ms


def look(settings: Settings, clock: Callable[[], int]) -> View:
    """See what runs; nothing is started or made, the control store least of all."""
    programs = manager_of(settings).status()
    if not control_exists(settings.control_url):
        return View(clock(), programs, [])
    store = open_control(settings.control_url, settings.control_secret)
    try:
        now_ms = clock()  # a manager or a store may have taken its time, in which leases ran out
        streams = overview(store)
        found = {
            each.stream: standstill(settings.home / "streams", each.stream, each.desired) for each in streams
        }
        still = {stream: each for stream, each in found.items() if each is not None}
        return View(now_ms, programs, streams, alive(store.hosts(), now_ms), still)
    finally:
        store.close()


def alive(hosts: Sequence[HostReport], now_ms: int) -> list[HostReport]:
    """Those heard of lately, without any whose place on the same machine a younger one has taken."""
    newest = {
        (host.host.rpartition("-")[0], host.address): host
        for host in sorted(hosts, key=lambda host: host.began_at_ms)
    }
    return [host for host in newest.values() if now_ms - host.seen_at_ms < SILENT_MS]
