"""The part of the control store that a stream host uses.

The store itself belongs to the platform. The host knows this protocol only, so it runs against any store that keeps
the same promises.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.stream_state import StreamState


class DesiredRunState(StrEnum):
    """The state that a user asks for."""

    RUNNING = "running"
    PAUSED = "paused"
    """A host has the stream and runs its timers, but it reads no records."""
    DRAINED = "drained"
    STOPPED = "stopped"

    @property
    def as_state(self) -> StreamState:
        """The state of a stream that does what is asked."""
        return StreamState(self.value)


@dataclass(frozen=True)
class DesiredState:
    """The desired state of one stream, and the revision of the request.

    A higher revision of the same state restarts a running stream. A different state that is more than one revision
    higher also restarts it: the request for a restart came in between.
    """

    stream: str
    desired: DesiredRunState
    revision: int = 0

    @property
    def needs_host(self) -> bool:
        """Whether a host must run the stream."""
        return self.desired in (DesiredRunState.RUNNING, DesiredRunState.PAUSED)


@dataclass(frozen=True)
class Lease:
    """The right to write a stream's tables, until it expires or another host takes it over.

    `epoch` rises with every acquisition: of two holders, the one with the higher epoch may write.
    """

    stream: str
    holder: str
    epoch: int
    expires_at_ms: int


@dataclass(frozen=True)
class BatchRecord:
    """One committed batch of a stream. Times are milliseconds of UTC, durations are milliseconds.

    `kind` is `data` for a batch of records, `tick` for a batch without records. `watermark_ms` is None before the
    first record. `lag_records` is how many records the topic held beyond `accounts` when the batch started.
    """

    stream: str
    batch_id: int
    epoch: int
    kind: str
    clock_ms: int
    watermark_ms: int | None
    accounts: tuple[PartitionAccount, ...]
    panes: Mapping[str, int] = field(default_factory=dict)
    """Written rows by timing: early, on_time, late; retractions count as `retract`."""
    rows: int = 0
    lag_records: int = 0
    durations_ms: Mapping[str, float] = field(default_factory=dict)
    state_rows: int = 0
    """Rows of the state after the batch, superseded ones included."""
    state: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """For each stage, the `rows` of its state and the `bytes` of its files."""
    result_rows: Mapping[str, int] = field(default_factory=dict)
    """Rows written to each table and topic, by its path in the outcome."""
    committed_at_ms: int | None = None
    """When the batch was committed; None if 0.1.0 committed it."""

    @property
    def commit_time_ms(self) -> int:
        """When the batch was committed, or its batch time where only that is known."""
        return self.clock_ms if self.committed_at_ms is None else self.committed_at_ms


@dataclass(frozen=True)
class StreamHealth:
    """The last reported state of a stream. `reason` is empty while the stream runs.

    The first line of a reason is its summary. The traceback of user code may follow.

    `at_ms` is when the state was reported; for an active stream, when it was started. `epoch` is the epoch of the
    host's lease: of two reports, the one with the higher epoch counts.
    """

    stream: str
    state: StreamState
    reason: str
    at_ms: int
    epoch: int = 0

    @property
    def reason_summary(self) -> str:
        """The reason in one line."""
        return self.reason.partition("\n")[0]

    @property
    def reason_details(self) -> str:
        """The traceback of user code; empty if there is none."""
        return self.reason.partition("\n")[2]


@dataclass(frozen=True)
class StreamBacklog:
    """The records that wait for a stream that commits nothing, and since when.

    `batch_id` is the stream's newest batch, -1 for none. The backlog is over when a newer batch is committed.
    `epoch` is the epoch of the host's lease.
    """

    stream: str
    batch_id: int
    records: int
    since_ms: int
    epoch: int


@dataclass(frozen=True)
class HostReport:
    """A live host: the address of its health page and metrics, its start, and its last heartbeat."""

    host: str
    address: str
    started_at_ms: int
    seen_at_ms: int


class HostControl(Protocol):
    """The host's side of the control store. Every call is its own transaction."""

    def acquire_lease(self, stream: str, holder: str, now_ms: int, ttl_ms: int) -> Lease | None:
        """Take the lease if it is free, expired or already the holder's; return None if another host has it."""

    def renew_lease(self, lease: Lease, now_ms: int, ttl_ms: int) -> bool:
        """Extend the lease. Return False, and change nothing, if it is no longer the holder's."""

    def release_lease(self, lease: Lease) -> None:
        """Release the lease, so that the next host does not wait; do nothing if it is already lost."""

    def read_lease(self, stream: str) -> Lease | None:
        """Return the lease, expired or not; None if no host ever had it."""

    def read_desired_states(self) -> Mapping[str, DesiredState]:
        """Return the desired state of each stream."""

    def record_batch(self, record: BatchRecord) -> None:
        """Store a batch once: an existing record of the same stream and batch stays as it is."""

    def read_last_batch(self, stream: str) -> BatchRecord | None:
        """Return the newest record of a stream."""

    def report_health(self, health: StreamHealth) -> None:
        """Store the state of a stream in place of the last one, unless that one has a higher epoch."""

    def report_lost(self, health: StreamHealth) -> None:
        """Note that this host lost a stream, and why. From now on another host reports its state."""

    def report_backlogs(self, backlogs: Sequence[StreamBacklog]) -> None:
        """Store which streams commit nothing while records wait. Replaces earlier reports of the same streams."""

    def report_host(self, report: HostReport) -> None:
        """Store that a host is alive, in place of its last report."""
