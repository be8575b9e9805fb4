"""The stack at a glance: its programs and its streams, for `penstock status`."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.infra.processes import ProgramStatus
from penstock.pipelines.host.control import Desired
from penstock.platform.control import control_exists, open_control
from penstock.platform.control.reports import StreamOverview, overview
from penstock.platform.settings import Settings
from penstock.platform.stack.manager import manager_of


@dataclass(frozen=True)
class View:
    """What runs, at one moment."""

    at_ms: int
    programs: Sequence[ProgramStatus]
    streams: Sequence[StreamOverview]

    @property
    def right(self) -> bool:
        """Whether everything that should run does."""
        ready = bool(self.programs) and all(program.ready for program in self.programs)
        return ready and all(self.stream_right(stream) for stream in self.streams)

    def stream_right(self, stream: StreamOverview) -> bool:
        """Whether a stream is as it is wanted."""
        wanted = stream.desired is not None and stream.desired.desired is Desired.RUNNING
        return wanted == self.held(stream)

    def held(self, stream: StreamOverview) -> bool:
        """Whether a host has the stream now."""
        return stream.lease is not None and stream.lease.expires_at_ms > self.at_ms


def look(settings: Settings, now_ms: int) -> View:
    """See what runs; nothing is started or made, the control store least of all."""
    return View(now_ms, manager_of(settings).status(), _streams(settings.control_url))


def _streams(url: str) -> list[StreamOverview]:
    if not control_exists(url):
        return []
    store = open_control(url)
    try:
        return overview(store)
    finally:
        store.close()
