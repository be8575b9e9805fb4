"""Whether a stack that was just started has shown something."""

from collections.abc import Sequence
from contextlib import suppress

from penstock.infra.errors import NotInTimeError
from penstock.infra.waiting import wait_until
from penstock.pipelines.host.control import Desired
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import has_rows
from penstock.platform.lifecycle import PARKED, is_held

RUNNING = "running"


def wait_for_results(store: ControlStore, streams: Sequence[str], seconds: float) -> tuple[str, ...]:
    """Wait until every stream that is to run does, and has committed rows; returns those that do not in time."""
    desired = store.desired()
    wanted = [name for name in streams if desired[name].desired is Desired.RUNNING]
    with suppress(NotInTimeError):
        wait_until(lambda: all(_is_over(store, stream) for stream in wanted), seconds, "first rows")
    return tuple(stream for stream in wanted if not _shows(store, stream))


def _is_over(store: ControlStore, stream: str) -> bool:
    """Whether there is nothing to wait for: it runs and has rows, or it is parked."""
    told = store.health(stream)
    return _shows(store, stream) or (told is not None and told.state == PARKED)


def _shows(store: ControlStore, stream: str) -> bool:
    told = store.health(stream)
    runs = told is not None and told.state == RUNNING and is_held(store, stream)
    return runs and has_rows(store, stream)
