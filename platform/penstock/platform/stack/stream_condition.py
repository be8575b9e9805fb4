"""The condition of a stream in words: its state, and what to know about it."""

from penstock.engine.host.stream_state import StreamState
from penstock.platform.control.reports import StreamOverview
from penstock.platform.services.definition_files import find_changed_file
from penstock.platform.services.stream_catalog import list_stream_names
from penstock.platform.services.stream_hold import StreamHold
from penstock.platform.services.stream_lifecycle import RETRYABLE_STATES, is_from_lease_holder
from penstock.platform.services.watermark_ahead import TROUBLESHOOTING_PAGE, describe_ahead
from penstock.platform.stack.stack_view import StackView


def describe_state(view: StackView, stream: StreamOverview) -> str:
    """Return the state that the host reports; a stream without a live lease does not run, whatever it reported."""
    health, desired_state = stream.health, stream.desired
    if stream.lease is not None and view.is_leased(stream):
        is_reported = health is not None and is_from_lease_holder(health, stream.lease)
        if desired_state is not None and desired_state.needs_host and not is_reported:
            return "starting"
        return str(health.state if health else StreamState.DRAINED)
    if health is None or health.state.is_active:
        return str(StreamState.STOPPED)
    if desired_state is not None and _is_stopped_after_failure(stream):
        return str(desired_state.desired)
    return str(health.state)


def describe_note(view: StackView, stream: StreamOverview) -> str:
    """Return what to know about a stream beside its figures; empty if there is nothing."""
    notes = [describe_removed_file(stream.stream), _describe_reason(view, stream)]
    if any(notes):
        return "\n".join(filter(None, notes))
    desired = stream.desired.desired if stream.desired else None
    return "" if view.is_stream_healthy(stream) else f"should be {desired}, but no host runs it"


def describe_removed_file(stream: str) -> str:
    """Return a note for a stream without a file; empty if it has one."""
    if stream in list_stream_names():
        return ""
    return f"file removed. Restore it, or remove the stream: `penstock stream drop {stream}`"


def _describe_reason(view: StackView, stream: StreamOverview) -> str:
    """Return what to know about a stream: a fault, a changed file, a slow batch, or that it waits for records."""
    if hold := view.standstills.get(stream.stream):
        return _describe_hold(view, stream, hold)
    health = None if _is_stopped_after_failure(stream) else stream.health
    if health is None or health.reason or not view.is_leased(stream):
        return health.reason if health else ""
    if ahead_ms := view.watermark_ahead_ms(stream):
        return f"{describe_ahead(ahead_ms)}, so new records are late: see {TROUBLESHOOTING_PAGE}"
    changed_file = find_changed_file(stream.stream, health.at_ms)
    if changed_file is None:
        if slow_batch := view.describe_slow_batch(stream):
            return slow_batch
        idle_inputs = view.find_idle_inputs(stream)
        return "" if idle_inputs is None else idle_inputs.text
    return f"{changed_file.name} changed since the start: `penstock stream plan-upgrade {stream.stream}`"


def _describe_hold(view: StackView, stream: StreamOverview, hold: StreamHold) -> str:
    if view.is_leased(stream):
        return f"on hold for {hold.operation}; {hold.desired} afterwards"
    command_name = "start" if hold.desired == "running" else "pause"
    return (
        f"on hold since {hold.operation} was interrupted; desired before: {hold.desired}. Repeat it, or run "
        f"`penstock stream {command_name} {stream.stream}`"
    )


def _is_stopped_after_failure(stream: StreamOverview) -> bool:
    """Whether a stop or drain was requested after the stream failed; no host may be left to report it."""
    health, desired_state = stream.health, stream.desired
    return (
        health is not None
        and health.state in RETRYABLE_STATES
        and desired_state is not None
        and not desired_state.needs_host
    )
