"""The state of the stack for `penstock status`: its programs, streams and hosts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.engine.host.control import HostReport
from penstock.engine.host.stream_state import StreamState
from penstock.infra.processes import ProgramStatus
from penstock.platform.control import ControlStore, control_store_exists, open_control_store
from penstock.platform.control.batch_rates import BatchRates, read_rates_by_stream
from penstock.platform.control.reports import StreamOverview, read_overview
from penstock.platform.services.idle_inputs import IdleInputs, find_idle_inputs
from penstock.platform.services.slow_batch import describe_slow_batch
from penstock.platform.services.stream_hold import StreamHold, read_hold
from penstock.platform.services.watermark_ahead import measure_ahead_ms
from penstock.platform.settings import Settings
from penstock.platform.settings.model import AlertSettings
from penstock.platform.stack.manager import stack_manager

RATES_WINDOW_MS = 60_000
HOST_TIMEOUT_MS = 60_000
"""A host that has not reported for this long is not shown."""


@dataclass(frozen=True)
class StackView:
    """The state of the stack at one point in time."""

    at_ms: int
    programs: Sequence[ProgramStatus]
    streams: Sequence[StreamOverview]
    hosts: Sequence[HostReport] = ()
    standstills: Mapping[str, StreamHold] = field(default_factory=dict)
    """Streams that are on hold, or that a killed process left on hold."""
    rates: Mapping[str, BatchRates] = field(default_factory=dict)
    """The rates of each stream with a host, since the start of the stream but at most of RATES_WINDOW_MS."""
    alerts: AlertSettings = field(default_factory=AlertSettings)
    """The limits of watermarks that are ahead of the clock."""
    streams_folder: Path | None = None
    """The folder of journals and states, if it is on this machine."""

    @property
    def is_healthy(self) -> bool:
        """Whether everything that should run is running."""
        are_programs_ready = bool(self.programs) and all(program.ready for program in self.programs)
        return are_programs_ready and all(self.is_stream_healthy(stream) for stream in self.streams)

    def is_stream_healthy(self, stream: StreamOverview) -> bool:
        """Whether a stream is in its desired state.

        One that failed and is retried is not healthy, nor one left on hold or with a watermark ahead of the clock.
        """
        if stream.stream in self.standstills:
            return False
        if self.is_leased(stream) and stream.health is not None and stream.health.state.is_failure:
            return False
        should_run = stream.desired is not None and stream.desired.needs_host
        return should_run == self.is_leased(stream) and not self.watermark_ahead_ms(stream)

    def watermark_ahead_ms(self, stream: StreamOverview) -> int:
        """Return by how much the watermark of a stream is ahead of the clock; 0 if it should not run."""
        if stream.last is None or stream.desired is None or not stream.desired.needs_host:
            return 0
        limit_ms = self.alerts.max_watermark_ahead_of(stream.stream)
        return measure_ahead_ms(stream.last.watermark_ms, self.at_ms, limit_ms)

    def find_idle_inputs(self, stream: StreamOverview) -> IdleInputs | None:
        """Return since when the inputs of a running stream are idle while windows wait; None if not so."""
        if self.streams_folder is None or stream.lag_records or not self._is_running(stream):
            return None
        return find_idle_inputs(self.streams_folder, stream.stream, self.at_ms)

    def describe_slow_batch(self, stream: StreamOverview) -> str:
        """Return which batch of a running stream takes long; empty if there is none."""
        if self.streams_folder is None or not self._is_running(stream):
            return ""
        return describe_slow_batch(self.streams_folder, stream.stream, self.at_ms)

    def _is_running(self, stream: StreamOverview) -> bool:
        is_reported = stream.health is not None and stream.health.state is StreamState.RUNNING
        return is_reported and self.is_leased(stream)

    def is_leased(self, stream: StreamOverview) -> bool:
        """Whether a host holds the stream's lease now."""
        return stream.lease is not None and stream.lease.expires_at_ms > self.at_ms


def read_stack_view(settings: Settings, clock: Callable[[], int]) -> StackView:
    """Read the state of the stack. Starts and creates nothing, not even the control store."""
    programs = stack_manager(settings).list_statuses()
    if not control_store_exists(settings.control_url):
        return StackView(clock(), programs, [])
    store = open_control_store(settings.control_url, settings.control_secret)
    try:
        return read_store_view(settings, store, programs, clock)
    finally:
        store.close()


def read_store_view(
    settings: Settings, store: ControlStore, programs: Sequence[ProgramStatus], clock: Callable[[], int]
) -> StackView:
    """Read the state of the streams and hosts from an open store."""
    now_ms = clock()  # leases may have expired while the manager and the store were queried
    streams = read_overview(store)
    possible_holds = {
        overview.stream: read_hold(settings.home / "streams", overview.stream, overview.desired)
        for overview in streams
    }
    standstills = {stream: hold for stream, hold in possible_holds.items() if hold is not None}
    return StackView(
        now_ms,
        programs,
        streams,
        filter_live_hosts(store.read_hosts(), now_ms),
        standstills,
        read_rates_by_stream(
            store,
            {
                overview.stream: find_rates_start(overview, now_ms)
                for overview in streams
                if overview.lease is not None and overview.lease.expires_at_ms > now_ms
            },
            now_ms,
        ),
        settings.alerts,
        settings.home / "streams",
    )


def find_rates_start(overview: StreamOverview, now_ms: int) -> int:
    """Return since when the rates of a stream count: since its start, but at most since a minute ago."""
    started_at_ms = overview.health.at_ms if overview.health and overview.health.state.is_active else 0
    return max(now_ms - RATES_WINDOW_MS, min(started_at_ms, now_ms - 1))


def filter_live_hosts(hosts: Sequence[HostReport], now_ms: int) -> list[HostReport]:
    """Return hosts that reported recently, without those replaced by a newer host on the same address."""
    newest = {
        (host.host.rpartition("-")[0], host.address): host
        for host in sorted(hosts, key=lambda host: host.started_at_ms)
    }
    return [host for host in newest.values() if now_ms - host.seen_at_ms < HOST_TIMEOUT_MS]
