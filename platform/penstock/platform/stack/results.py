"""Whether a fresh stack has shown something."""

from collections.abc import Sequence

from penstock.infra.errors import NotInTimeError
from penstock.infra.waiting import wait_until
from penstock.pipelines.host.control import Desired
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import has_rows


def wait_for_results(store: ControlStore, streams: Sequence[str], seconds: float) -> tuple[str, ...]:
    """Wait until every stream that is to run has committed rows; returns those that have not in time."""
    desired = store.desired()
    wanted = [name for name in streams if desired[name].desired is Desired.RUNNING]
    try:
        wait_until(lambda: not _without_rows(store, wanted), seconds, "first rows")
    except NotInTimeError:
        return _without_rows(store, wanted)
    return ()


def _without_rows(store: ControlStore, streams: Sequence[str]) -> tuple[str, ...]:
    return tuple(stream for stream in streams if not has_rows(store, stream))
