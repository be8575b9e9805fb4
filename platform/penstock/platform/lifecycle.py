"""What should become of a stream: said by people and by Dagster's jobs through the same functions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.infra.errors import NotInTimeError
from penstock.infra.waiting import wait_until
from penstock.pipelines.host.control import Desired, DesiredState, Lease, StreamHealth
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore
from penstock.platform.errors import StackError, UnknownStreamError

FAILED, PARKED = "failed", "parked"


@dataclass(frozen=True)
class Verb:
    """Something that can be asked of a stream: what it is to become, and whether that is to be done anew."""

    desired: Desired
    says: str
    anew: bool = False


VERBS: Mapping[str, Verb] = {
    "start": Verb(
        Desired.RUNNING,
        "Have a stream run; one that runs is left alone, one that failed or is parked is tried.",
    ),
    "drain": Verb(Desired.DRAINED, "Let a stream finish its batch, commit it, and stop."),
    "stop": Verb(
        Desired.STOPPED,
        "Stop a stream now; a batch in flight is cut off, and repeated whole at the next start.",
    ),
    "pause": Verb(
        Desired.PAUSED,
        "Have a stream read nothing for a while; what the clock alone brings, timers above all, goes on.",
    ),
    "resume": Verb(Desired.RUNNING, "Have a stream that was paused read on from where it was."),
    "restart": Verb(
        Desired.RUNNING, "Drain a stream and start it again at once, with its pipeline read anew.", anew=True
    ),
}


@dataclass(frozen=True)
class Asked:
    """A wish that was written down, when, and the epoch that the stream's writer had then."""

    state: DesiredState
    at_ms: int
    epoch: int
    anew: bool

    @property
    def stream(self) -> str:
        """Whose wish it is."""
        return self.state.stream


def ask(store: ControlStore, stream: str, verb: Verb, known: Collection[str]) -> Asked:
    """Write down what should become of a stream. UnknownStreamError for one that is not among the known."""
    check_known(stream, known)
    told, lease, now = store.health(stream), store.holder(stream), now_ms()
    # What is to stand still is said anew each time: a replay that holds it still lets it be then.
    tried = verb.desired is Desired.RUNNING and told is not None and told.state in (FAILED, PARKED)
    anew = verb.anew or tried or verb.desired in (Desired.DRAINED, Desired.STOPPED)
    state = store.desire(stream, verb.desired, now, anew=anew)
    return Asked(state, now, lease.epoch if lease else 0, verb.anew and is_held(store, stream))


def check_known(stream: str, known: Collection[str]) -> None:
    """Raise UnknownStreamError for a stream that is not among the known."""
    if stream not in known:
        raise UnknownStreamError(f"there is no stream {stream!r}; there are: {', '.join(known)}")


def is_held(store: ControlStore, stream: str) -> bool:
    """Whether a host has the stream now: a live lease says so."""
    lease = store.holder(stream)
    return lease is not None and lease.expires_at_ms > now_ms()


def is_so(store: ControlStore, asked: Asked) -> bool:
    """Whether a stream is as it was asked for."""
    held, lease = is_held(store, asked.stream), store.holder(asked.stream)
    if not asked.state.held:
        return not held
    told = store.health(asked.stream)
    if not held or lease is None or told is None:
        return False
    begun = not asked.anew or lease.epoch > asked.epoch
    return begun and is_of(told, lease) and told.state == asked.state.desired


def is_of(told: StreamHealth, lease: Lease) -> bool:
    """Whether it was said by who has the lease, and not by a host before it, which may have been killed."""
    return told.epoch in (0, lease.epoch)


def wait_for(store: ControlStore, asked: Asked, seconds: float) -> None:
    """Return once the stream is as asked; StackError says what is known when it was not in time, or is parked."""
    stream, desired = asked.stream, asked.state.desired
    try:
        wait_until(
            lambda: _parked(store, asked) is not None or is_so(store, asked),
            seconds,
            f"{stream} to be {desired}",
        )
    except NotInTimeError:
        told = store.health(stream)
        last = f"its host last said: {told.state} {told.reason}".rstrip() if told else "no host has it"
        raise StackError(
            f"{stream} was not {desired} after {seconds:g} s ({last}); "
            "`penstock status` shows whether the host runs, `penstock logs host` what it does"
        ) from None
    if parked := _parked(store, asked):
        raise StackError(f"{stream} is parked: {parked.reason}")


def _parked(store: ControlStore, asked: Asked) -> StreamHealth | None:
    """What its host said when it gave up after it was asked; None where it did not, or was to stop anyway."""
    told = store.health(asked.stream)
    gave_up = told is not None and told.state == PARKED and told.at_ms >= asked.at_ms
    return told if gave_up and asked.state.held else None
