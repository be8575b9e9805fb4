"""Bringing the local stack up: checked first, begun in order, undone where it fails."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from penstock.infra.broker import format_storage
from penstock.infra.jars import RUNNING, ensure_jars
from penstock.infra.processes import Manager, Program
from penstock.ingestion.contracts import Contract, declared
from penstock.ingestion.topics import ensure_topics
from penstock.pipelines import catalog
from penstock.pipelines.host.control import Desired
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore, open_control
from penstock.platform.errors import SettingsError
from penstock.platform.settings import Settings
from penstock.platform.settings.model import KafkaSettings
from penstock.platform.stack.dagster_home import write_dagster_home
from penstock.platform.stack.manager import manager_of
from penstock.platform.stack.programs import broker_config, stack_programs
from penstock.platform.stack.requirements import check_machine, check_ports
from penstock.platform.streams import check_stream, stream_names


class Progress(Protocol):
    """Shows a person what is being done; the function it yields takes details."""

    def step(self, doing: str) -> AbstractContextManager[Callable[[str], None]]:
        """One step, from its beginning to its end."""

    def missing(self, what: str) -> None:
        """What is gone on without."""


def bring_up(settings: Settings, progress: Progress) -> None:
    """Have the whole stack running. Said again it changes nothing that is already right.

    On any failure, what this call started is stopped again; a stack that ran before is left as it was.
    """
    manager = manager_of(settings)
    with progress.step("contracts and pipelines are sound"):
        topics = declared()
        check_known("dagster.nightly_backfills", settings.dagster.nightly_backfills, catalog.names())
        check_known("alerts.of", settings.alerts.of, stream_names())
        streams = {stream: check_stream(stream) for stream in settings.streams}
    missing = {f"topic {topic}": problem for topic, problem in topics.broken.items()}
    for what, problem in {**missing, **streams}.items():
        if problem is not None:
            progress.missing(f"without {what}, until its file is mended: {problem}")
    with progress.step("this machine has what is needed"):
        check_machine(settings)
        check_ports(settings, manager)
    jars = _prepare(settings, progress)
    with _nothing_left_behind(manager):
        _answering_broker(settings, manager, jars, progress)
        with progress.step("topics are as declared"):
            _ensure_topics(settings.kafka, topics.sound)
        _start(manager, stack_programs(settings, jars), progress)


def check_known(setting: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Raise SettingsError where a setting names a stream that there is not."""
    for name in names:
        if name not in known:
            raise SettingsError(
                f"{setting} names {name!r}, and there is no such stream; there are: {', '.join(known)}"
            )


def _ensure_topics(kafka: KafkaSettings, contracts: Sequence[Contract]) -> None:
    ensure_topics(kafka.servers, contracts, kafka.layout, client=kafka.client("topics"))


def _prepare(settings: Settings, progress: Progress) -> list[Path]:
    with progress.step("jars are as locked") as tell:
        sets = sorted({*RUNNING, *settings.spark_jar_sets})
        ensure_jars(
            settings.jars, sets, progress=lambda done, total, name: tell(f"{done} of {total}: {name}")
        )
        jars = ensure_jars(settings.jars, ["kafka"])
    if not settings.kafka.bootstrap:
        with progress.step("the broker has its folder"):
            format_storage(broker_config(settings), jars)
    with progress.step("control store and Dagster's home are ready"):
        store = open_control(settings.control_url, settings.control_secret)
        want_streams(store, settings.streams)
        store.close()
        write_dagster_home(settings)
    return jars


def want_streams(store: ControlStore, streams: Sequence[str]) -> None:
    """Have the streams of a fresh stack run; one that somebody decided about stays as decided."""
    decided = store.desired()
    for stream in streams:
        if stream not in decided:
            store.desire(stream, Desired.RUNNING, now_ms())


def _answering_broker(settings: Settings, manager: Manager, jars: list[Path], progress: Progress) -> None:
    """Have the broker answer, with what the manager has already: others begin when their topics are there."""
    if settings.kafka.bootstrap or _broker_is_ready(manager):
        return
    there = {"broker", *(status.name for status in manager.status())}  # alone where a start was cut off
    programs = [program for program in stack_programs(settings, jars) if program.name in there]
    with progress.step(f"broker answers at {settings.kafka.servers}"):
        manager.start(programs, awaited=["broker"])


def _start(manager: Manager, programs: list[Program], progress: Progress) -> None:
    waiting = {program.name for program in programs}
    with progress.step("feed, host and Dagster run") as tell:

        def ready(name: str) -> None:
            waiting.discard(name)
            tell("waiting for " + ", ".join(sorted(waiting)))

        manager.start(programs, ready=lambda status: ready(status.name))


def _broker_is_ready(manager: Manager) -> bool:
    return any(status.name == "broker" and status.ready for status in manager.status())


@contextmanager
def _nothing_left_behind(manager: Manager) -> Iterator[None]:
    ran_before = manager.running()
    try:
        yield
    except BaseException:
        if not ran_before:
            manager.stop()
        raise
