"""What should become of a stream: said by people and by Dagster's jobs through the same functions."""

from collections.abc import Collection

from penstock.infra.errors import NotInTimeError
from penstock.infra.waiting import wait_until
from penstock.pipelines.host.control import Desired, DesiredState
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore
from penstock.platform.errors import StackError, UnknownStreamError


def ask(store: ControlStore, stream: str, desired: Desired, known: Collection[str]) -> DesiredState:
    """Write down what should become of a stream. UnknownStreamError for one that is not among the known."""
    check_known(stream, known)
    return store.desire(stream, desired, now_ms())


def check_known(stream: str, known: Collection[str]) -> None:
    """Raise UnknownStreamError for a stream that is not among the known."""
    if stream not in known:
        raise UnknownStreamError(f"there is no stream {stream!r}; there are: {', '.join(known)}")


def is_so(store: ControlStore, stream: str, desired: Desired) -> bool:
    """Whether a stream is as wanted: a live lease means that a host runs it, none that nobody does."""
    lease = store.holder(stream)
    held = lease is not None and lease.expires_at_ms > now_ms()
    return held == (desired is Desired.RUNNING)


def wait_for(store: ControlStore, stream: str, desired: Desired, seconds: float) -> None:
    """Return once the stream is as wanted; StackError says what is known when it was not in time."""
    try:
        wait_until(lambda: is_so(store, stream, desired), seconds, f"{stream} to be {desired}")
    except NotInTimeError:
        told = store.health(stream)
        last = f"its host last said: {told.state} {told.reason}".rstrip() if told else "no host has it"
        raise StackError(
            f"{stream} was not {desired} after {seconds:g} s ({last}); "
            "`penstock status` shows whether the host runs, `penstock logs host` what it does"
        ) from None
