"""What a stream host asks of the control store, and what it tells it.

The store itself lives with the platform; the host knows only this protocol, so that a host can be run and
tested against any store that keeps its promises.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class DesiredRunState(StrEnum):
    """What should become of a stream."""

    RUNNING = "running"
    PAUSED = "paused"
    """Held by a host, which reads nothing; what the clock alone brings goes on."""
    DRAINED = "drained"
    STOPPED = "stopped"


@dataclass(frozen=True)
class DesiredState:
    """What should become of one stream, and since which request.

    The same wish with a higher revision is a wish to begin anew: a stream that runs is started again. So is another
    wish that is more than one revision higher: one that is paused is then started again, not only resumed.
    """

    stream: str
    desired: DesiredRunState
    revision: int = 0

    @property
    def needs_host(self) -> bool:
        """Whether a host is to have the stream."""
        return self.desired in (DesiredRunState.RUNNING, DesiredRunState.PAUSED)


@dataclass(frozen=True)
class Lease:
    """The right to write a stream's tables, until it expires or somebody takes it over.

    `epoch` rises with every acquisition: of two holders the one with the higher epoch is right.
    """

    stream: str
    holder: str
    epoch: int
    expires_at_ms: int


@dataclass(frozen=True)
class PartitionAccount:
    """What became of the records that a batch read from one partition: offsets [start, end).

    `filtered` are those that the pipeline's own steps removed before any window.
    """

    topic: str
    partition: int
    start: int
    end: int
    read: int
    folded: int
    late: int
    quarantined: int
    duplicate: int
    filtered: int = 0

    @property
    def is_balanced(self) -> bool:
        """Whether every record read is in exactly one of the accounts."""
        return self.read == self.folded + self.late + self.quarantined + self.duplicate + self.filtered


@dataclass(frozen=True)
class BatchRecord:
    """One committed batch of a stream. Times are milliseconds of UTC, durations milliseconds.

    `kind` is `data` for records read, `tick` for a batch without any. `watermark_ms` is None until the
    first record has been seen. `lag_records` is what the topic held beyond `accounts` when the batch began.
    """

    stream: str
    batch_id: int
    epoch: int
    kind: str
    clock_ms: int
    watermark_ms: int | None
    accounts: tuple[PartitionAccount, ...]
    panes: Mapping[str, int] = field(default_factory=dict)
    """Rows written by timing: early, on_time, late; retractions counted as `retract`."""
    rows: int = 0
    lag_records: int = 0
    durations_ms: Mapping[str, float] = field(default_factory=dict)
    state_rows: int = 0
    """Rows that the state has after the batch, superseded ones included."""
    state: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The same by stage, and the `bytes` of its files; of batches of an older version nothing."""
    result_rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows each table and topic was given, by what an outcome calls it; so, too."""


@dataclass(frozen=True)
class StreamHealth:
    """How a stream is doing in its host, as last told. `reason` is empty while it runs.

    `at_ms` is when that was said; of a stream that is at work, when it was begun, whatever was asked of it since.
    `epoch` is that of the lease under which the host had it: of two hosts the one with the higher epoch is right.
    """

    stream: str
    state: str
    reason: str
    at_ms: int
    epoch: int = 0
    """0 where a host of an older version said it, which did not tell."""


@dataclass(frozen=True)
class StreamBacklog:
    """Records that wait for a stream which commits nothing: so many, and since when they are seen to.

    `batch_id` is its newest batch, -1 for none: once there is another, this is over. `epoch` is that of its lease.
    """

    stream: str
    batch_id: int
    records: int
    since_ms: int
    epoch: int


@dataclass(frozen=True)
class HostReport:
    """That a host is there: where it shows its health and metrics, and when it began and was last heard of."""

    host: str
    address: str
    began_at_ms: int
    seen_at_ms: int


class HostControl(Protocol):
    """The host's side of the control store. Every call is its own transaction."""

    def acquire_lease(self, stream: str, holder: str, now_ms: int, ttl_ms: int) -> Lease | None:
        """Take the lease where it is free, expired or already the holder's; None while another has it."""

    def renew_lease(self, lease: Lease, now_ms: int, ttl_ms: int) -> bool:
        """Prolong the lease. False, and nothing changed, when it is no longer the holder's."""

    def release_lease(self, lease: Lease) -> None:
        """Give the lease back, so that the next host need not wait; nothing where it was lost already."""

    def read_lease(self, stream: str) -> Lease | None:
        """Who has the lease, expired or not; None where nobody ever had."""

    def read_desired_states(self) -> Mapping[str, DesiredState]:
        """What should run, by stream."""

    def record_batch(self, record: BatchRecord) -> None:
        """Write a batch down, once: a record of the same stream and batch is left as it is."""

    def read_last_batch(self, stream: str) -> BatchRecord | None:
        """The newest record of a stream."""

    def report_health(self, health: StreamHealth) -> None:
        """Say how a stream is doing; replaces what was said of it before, unless a host that came later said it."""

    def report_lost(self, health: StreamHealth) -> None:
        """Know that this host lost a stream, and why: how it is doing is for another host to say from now on."""

    def report_backlogs(self, backlogs: Sequence[StreamBacklog]) -> None:
        """Say which streams commit nothing while records wait; of each that replaces what a host before it said."""

    def report_host(self, report: HostReport) -> None:
        """Say that a host is there; replaces what it said before."""
