"""Requests for states of streams, from the command line and Dagster's jobs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.core.clock import now_ms
from penstock.core.errors import WaitTimeoutError
from penstock.core.names import suggest_name
from penstock.core.waiting import wait_until
from penstock.engine.host.control import DesiredRunState, DesiredState, Lease, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore
from penstock.platform.errors import StackError, UnknownStreamError
from penstock.platform.services.stream_catalog import refuse_invalid_definition

RETRYABLE_STATES = (StreamState.RETRYING, StreamState.FAILED)
"""The states in which a request to start is a new try."""


@dataclass(frozen=True)
class StreamCommand:
    """A lifecycle command: the desired state, whether the stream restarts, and whether a host reads its file."""

    desired: DesiredRunState
    description: str
    is_restart: bool = False
    reads_file: bool = False

    @property
    def stops(self) -> bool:
        """Whether the command stops a stream, which needs no file."""
        return self.desired in (DesiredRunState.DRAINED, DesiredRunState.STOPPED)


STREAM_COMMANDS: Mapping[str, StreamCommand] = {
    "start": StreamCommand(
        DesiredRunState.RUNNING,
        "Start a stream. A running stream is not affected; a failed one is retried.",
        reads_file=True,
    ),
    "drain": StreamCommand(
        DesiredRunState.DRAINED, "Finish the current batch of a stream, commit it, and stop the stream."
    ),
    "stop": StreamCommand(
        DesiredRunState.STOPPED,
        "Stop a stream immediately. The next start repeats an interrupted batch.",
    ),
    "pause": StreamCommand(
        DesiredRunState.PAUSED,
        "Pause the consumption of a stream. Processing-time timers keep firing.",
    ),
    "resume": StreamCommand(
        DesiredRunState.RUNNING, "Resume a paused stream at the offsets where it stopped reading."
    ),
    "restart": StreamCommand(
        DesiredRunState.RUNNING,
        "Drain a stream and start it again with its freshly loaded pipeline.",
        is_restart=True,
        reads_file=True,
    ),
}


@dataclass(frozen=True)
class StateRequest:
    """A requested state, the time of the request, and the stream's lease epoch at that time."""

    desired_state: DesiredState
    requested_at_ms: int
    previous_epoch: int
    is_restart: bool

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self.desired_state.stream


def request_state(
    store: ControlStore, stream: str, stream_command: StreamCommand, known_streams: Collection[str]
) -> StateRequest:
    """Write the desired state of a stream. Raises UnknownStreamError if the stream is not known.

    A stream that cannot run is not asked to: raises the DefinitionError of its file, and it stays as it is.
    """
    check_stream_exists(stream, known_streams)
    if stream_command.reads_file:
        refuse_invalid_definition(stream)
    health, lease, requested_at_ms = store.read_health(stream), store.read_lease(stream), now_ms()
    # Stopping always makes a new revision, so that a replay that holds the stream does not restart it afterwards.
    is_retry = (
        stream_command.desired is DesiredRunState.RUNNING
        and health is not None
        and health.state in RETRYABLE_STATES
    )
    starts_anew = stream_command.is_restart or is_retry or stream_command.stops
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
    """Raise UnknownStreamError, with the nearest match, if the stream is not known."""
    if stream not in known_streams:
        suggestion = suggest_name(stream, known_streams)
        where = (
            ""
            if suggestion
            else "; `penstock demo --list` lists the pipelines, archive-TOPIC archives a topic"
        )
        raise UnknownStreamError(
            f"there is no stream {stream!r}{'.' if suggestion else ''}{suggestion}{where}"
        )


def has_live_lease(store: ControlStore, stream: str) -> bool:
    """Whether the stream has a lease that has not expired."""
    lease = store.read_lease(stream)
    return lease is not None and lease.expires_at_ms > now_ms()


def is_state_reached(store: ControlStore, request: StateRequest) -> bool:
    """Whether a stream has reached the requested state."""
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
    """Whether the current lease holder reported this health, and not an earlier host that may have been killed."""
    return health.epoch in (0, lease.epoch)


def wait_for_state(store: ControlStore, request: StateRequest, timeout_s: float) -> None:
    """Wait until the stream has reached the requested state. Raises StackError if it fails or the time is over."""
    stream, desired = request.stream, request.desired_state.desired
    try:
        wait_until(
            lambda: _find_failed_health(store, request) is not None or is_state_reached(store, request),
            timeout_s,
            f"{stream} to be {desired}",
        )
    except WaitTimeoutError:
        health = store.read_health(stream)
        if health is not None and health.state.is_failure:
            raise StackError(
                f"{stream} is not {desired} after {timeout_s:g} s, and is retried: {health.reason_summary}"
            ) from None
        last_report = f"last report of its host: {health.state}" if health else "no host has reported"
        raise StackError(
            f"{stream} is not {desired} after {timeout_s:g} s ({last_report}); "
            "check the host with `penstock status` and `penstock logs host`"
        ) from None
    if failed_health := _find_failed_health(store, request):
        raise StackError(f"{stream} failed: {failed_health.reason}")


def _find_failed_health(store: ControlStore, request: StateRequest) -> StreamHealth | None:
    """Return the health that reports a failure after the request; None if there is none or the stream must stop."""
    health = store.read_health(request.stream)
    has_failed = (
        health is not None and health.state == StreamState.FAILED and health.at_ms >= request.requested_at_ms
    )
    return health if has_failed and request.desired_state.needs_host else None
