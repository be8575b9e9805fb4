"""What should become of a stream: said by people and by Dagster's jobs through the same functions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.core.clock import now_ms
from penstock.core.errors import WaitTimeoutError
from penstock.core.waiting import wait_until
from penstock.engine.host.control import DesiredRunState, DesiredState, Lease, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore
from penstock.platform.errors import StackError, UnknownStreamError

RETRYABLE_STATES = (StreamState.RETRYING, StreamState.FAILED)
"""The states in which a request to start is a new try."""


@dataclass(frozen=True)
class StreamCommand:
    """Something that can be asked of a stream: what it is to become, and whether that is to be done anew."""

    desired: DesiredRunState
    description: str
    is_restart: bool = False


STREAM_COMMANDS: Mapping[str, StreamCommand] = {
    "start": StreamCommand(
        DesiredRunState.RUNNING,
        "Run a stream. A running stream is not touched; a failed stream is retried.",
    ),
    "drain": StreamCommand(DesiredRunState.DRAINED, "Let a stream finish its batch, commit it, and stop."),
    "stop": StreamCommand(
        DesiredRunState.STOPPED,
        "Stop a stream now; a batch in flight is cut off, and repeated whole at the next start.",
    ),
    "pause": StreamCommand(
        DesiredRunState.PAUSED,
        "Have a stream read nothing for a while; what the clock alone brings, timers above all, goes on.",
    ),
    "resume": StreamCommand(
        DesiredRunState.RUNNING, "Have a stream that was paused read on from where it was."
    ),
    "restart": StreamCommand(
        DesiredRunState.RUNNING,
        "Drain a stream and start it again at once, with its pipeline read anew.",
        is_restart=True,
    ),
}


@dataclass(frozen=True)
class StateRequest:
    """A wish that was written down, when, and the epoch that the stream's writer had then."""

    desired_state: DesiredState
    requested_at_ms: int
    previous_epoch: int
    is_restart: bool

    @property
    def stream(self) -> str:
        """Whose wish it is."""
        return self.desired_state.stream


def request_state(
    store: ControlStore, stream: str, stream_command: StreamCommand, known_streams: Collection[str]
) -> StateRequest:
    """Write down what should become of a stream. UnknownStreamError for one that is not among the known."""
    check_stream_exists(stream, known_streams)
    health, lease, requested_at_ms = store.read_health(stream), store.read_lease(stream), now_ms()
    # What is to stand still is said anew each time: a replay that holds it still lets it be then.
    is_retry = (
        stream_command.desired is DesiredRunState.RUNNING
        and health is not None
        and health.state in RETRYABLE_STATES
    )
    starts_anew = (
        stream_command.is_restart
        or is_retry
        or stream_command.desired in (DesiredRunState.DRAINED, DesiredRunState.STOPPED)
    )
    desired_state = store.set_desired_state(
        stream, stream_command.desired, requested_at_ms, restart=starts_anew
    )
    return StateRequest(
        desired_state,
        requested_at_ms,
        lease.epoch if lease else 0,
        stream_command.is_restart and has_live_lease(store, stream),
    )


def check_stream_exists(stream: str, known_streams: Collection[str]) -> None:
    """Raise UnknownStreamError for a stream that is not among the known."""
    if stream not in known_streams:
        raise UnknownStreamError(f"there is no stream {stream!r}; there are: {', '.join(known_streams)}")


def has_live_lease(store: ControlStore, stream: str) -> bool:
    """Whether a host has the stream now: a live lease says so."""
    lease = store.read_lease(stream)
    return lease is not None and lease.expires_at_ms > now_ms()


def is_state_reached(store: ControlStore, request: StateRequest) -> bool:
    """Whether a stream is as it was asked for."""
    has_lease, lease = has_live_lease(store, request.stream), store.read_lease(request.stream)
    if not request.desired_state.needs_host:
        return not has_lease
    health = store.read_health(request.stream)
    if not has_lease or lease is None or health is None:
        return False
    is_new_epoch = not request.is_restart or lease.epoch > request.previous_epoch
    return (
        is_new_epoch
        and is_from_lease_holder(health, lease)
        and health.state == request.desired_state.desired.as_state
    )


def is_from_lease_holder(health: StreamHealth, lease: Lease) -> bool:
    """Whether it was said by who has the lease, and not by a host before it, which may have been killed."""
    return health.epoch in (0, lease.epoch)


def wait_for_state(store: ControlStore, request: StateRequest, timeout_s: float) -> None:
    """Return when the stream has the desired state; raise StackError if it fails or the time is up."""
    stream, desired = request.stream, request.desired_state.desired
    try:
        wait_until(
            lambda: _find_failed_health(store, request) is not None or is_state_reached(store, request),
            timeout_s,
            f"{stream} to be {desired}",
        )
    except WaitTimeoutError:
        health = store.read_health(stream)
        last_report = (
            f"last reported: {health.state} {health.reason}".rstrip() if health else "no host has it"
        )
        raise StackError(
            f"{stream} was not {desired} after {timeout_s:g} s ({last_report}); "
            "`penstock status` shows whether the host runs, `penstock logs host` what it does"
        ) from None
    if failed_health := _find_failed_health(store, request):
        raise StackError(f"{stream} failed: {failed_health.reason}")


def _find_failed_health(store: ControlStore, request: StateRequest) -> StreamHealth | None:
    """Return the report that the stream failed after the request; None for none, or if it should stop anyway."""
    health = store.read_health(request.stream)
    has_failed = (
        health is not None and health.state == StreamState.FAILED and health.at_ms >= request.requested_at_ms
    )
    return health if has_failed and request.desired_state.needs_host else None
