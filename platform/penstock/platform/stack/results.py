"""Whether a stack that was just started has shown something."""

from collections.abc import Sequence
from contextlib import suppress

from penstock.infra.errors import NotInTimeError
from penstock.infra.waiting import wait_until
from penstock.pipelines.host.control import Desired
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import has_rows
from penstock.platform.lifecycle import PARKED, is_held, is_of

RUNNING = "running"


def wait_for_results(store: ControlStore, streams: Sequence[str], seconds: float) -> tuple[str, ...]:
    """Wait until every stream that is to run does, and these have committed rows; returns those that have not."""
    desired = store.desired()
    wanted = [name for name in streams if desired[name].desired is Desired.RUNNING]
    others = [
        name for name, wish in desired.items() if wish.desired is Desired.RUNNING and name not in wanted
    ]
    with suppress(NotInTimeError):
        wait_until(
            lambda: (
                all(_is_parked(store, one) or _shows(store, one) for one in wanted)
                and all(_is_parked(store, one) or _runs(store, one) for one in others)
            ),
            seconds,
            "first rows",
        )
    return tuple(stream for stream in wanted if not _shows(store, stream))


def _is_parked(store: ControlStore, stream: str) -> bool:
    told = store.health(stream)
    return told is not None and told.state == PARKED


def _runs(store: ControlStore, stream: str) -> bool:
    told, lease = store.health(stream), store.holder(stream)
    said = told is not None and lease is not None and told.state == RUNNING and is_of(told, lease)
    return said and is_held(store, stream)


def _shows(store: ControlStore, stream: str) -> bool:
    return _runs(store, stream) and has_rows(store, stream)
