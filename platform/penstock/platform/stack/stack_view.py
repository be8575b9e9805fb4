"""The stack at a glance: its programs and its streams, for `penstock status`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.engine.host.control import HostReport
from penstock.infra.processes import ProgramStatus
from penstock.platform.control import control_store_exists, open_control_store
from penstock.platform.control.reports import StreamOverview, read_overview
from penstock.platform.services.stream_hold import StreamHold, read_hold
from penstock.platform.settings import Settings
from penstock.platform.stack.manager import stack_manager

HOST_TIMEOUT_MS = 60_000
"""A host that was not heard of for so long is not shown."""


@dataclass(frozen=True)
class StackView:
    """What runs, at one moment."""

    at_ms: int
    programs: Sequence[ProgramStatus]
    streams: Sequence[StreamOverview]
    hosts: Sequence[HostReport] = ()
    standstills: Mapping[str, StreamHold] = field(default_factory=dict)
    """Streams that stand still for something, or that were left so by something that was killed."""

    @property
    def is_healthy(self) -> bool:
        """Whether everything that should run does."""
        are_programs_ready = bool(self.programs) and all(program.ready for program in self.programs)
        return are_programs_ready and all(self.is_stream_healthy(stream) for stream in self.streams)

    def is_stream_healthy(self, stream: StreamOverview) -> bool:
        """Whether a stream is as it is wanted; one that was left standing still is not."""
        if stream.stream in self.standstills:
            return False
        should_run = stream.desired is not None and stream.desired.needs_host
        return should_run == self.is_leased(stream)

    def is_leased(self, stream: StreamOverview) -> bool:
        """Whether a host has the stream now."""
        return stream.lease is not None and stream.lease.expires_at_ms > self.at_ms


def read_stack_view(settings: Settings, clock: Callable[[], int]) -> StackView:
    """See what runs; nothing is started or made, the control store least of all."""
    programs = stack_manager(settings).list_statuses()
    if not control_store_exists(settings.control_url):
        return StackView(clock(), programs, [])
    store = open_control_store(settings.control_url, settings.control_secret)
    try:
        now_ms = clock()  # a manager or a store may have taken its time, in which leases ran out
        streams = read_overview(store)
        possible_holds = {
            overview_or_hold.stream: read_hold(
                settings.home / "streams", overview_or_hold.stream, overview_or_hold.desired
            )
            for overview_or_hold in streams
        }
        standstills = {
            stream: overview_or_hold
            for stream, overview_or_hold in possible_holds.items()
            if overview_or_hold is not None
        }
        return StackView(
            now_ms, programs, streams, filter_live_hosts(store.read_hosts(), now_ms), standstills
        )
    finally:
        store.close()


def filter_live_hosts(hosts: Sequence[HostReport], now_ms: int) -> list[HostReport]:
    """Those heard of lately, without any whose place on the same machine a younger one has taken."""
    newest = {
        (host.host.rpartition("-")[0], host.address): host
        for host in sorted(hosts, key=lambda host: host.began_at_ms)
    }
    return [host for host in newest.values() if now_ms - host.seen_at_ms < HOST_TIMEOUT_MS]
