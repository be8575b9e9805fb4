"""Waiting for the first rows of a stack that was just started."""

from collections.abc import Sequence
from contextlib import suppress

from penstock.core.errors import WaitTimeoutError
from penstock.core.waiting import wait_until
from penstock.engine.host.control import DesiredRunState
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import has_written_rows
from penstock.platform.services.stream_lifecycle import has_live_lease, is_from_lease_holder


def wait_for_first_rows(store: ControlStore, streams: Sequence[str], timeout_s: float) -> tuple[str, ...]:
    """Wait until each stream that should run is running and the given ones have rows; return those without rows."""
    desired = store.read_desired_states()
    awaited_streams = [name for name in streams if desired[name].desired is DesiredRunState.RUNNING]
    other_streams = [
        name
        for name, wish in desired.items()
        if wish.desired is DesiredRunState.RUNNING and name not in awaited_streams
    ]
    with suppress(WaitTimeoutError):
        wait_until(
            lambda: (
                all(
                    _has_failed(store, stream_name) or _has_shown_rows(store, stream_name)
                    for stream_name in awaited_streams
                )
                and all(
                    _has_failed(store, stream_name) or _is_running(store, stream_name)
                    for stream_name in other_streams
                )
            ),
            timeout_s,
            "first rows",
        )
    return tuple(stream for stream in awaited_streams if not _has_shown_rows(store, stream))


def _has_failed(store: ControlStore, stream: str) -> bool:
    health = store.read_health(stream)
    return health is not None and health.state == StreamState.FAILED


def _is_running(store: ControlStore, stream: str) -> bool:
    health, lease = store.read_health(stream), store.read_lease(stream)
    is_reported_running = (
        health is not None
        and lease is not None
        and health.state == StreamState.RUNNING
        and is_from_lease_holder(health, lease)
    )
    return is_reported_running and has_live_lease(store, stream)


def _has_shown_rows(store: ControlStore, stream: str) -> bool:
    return _is_running(store, stream) and has_written_rows(store, stream)
