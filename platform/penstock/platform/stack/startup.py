"""Starting the local stack: check the machine, start programs in order, roll back on failure."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from penstock.core.clock import now_ms
from penstock.core.names import explain_unknown_name
from penstock.core.progress import ProgressReporter
from penstock.engine.host.control import DesiredRunState
from penstock.infra.broker import format_storage
from penstock.infra.jars import RUNTIME_JAR_SETS, ensure_jars
from penstock.infra.processes import ProcessManager, Program
from penstock.ingestion.contracts import Contract, load_catalog
from penstock.ingestion.errors import IncompatibleChangeError
from penstock.ingestion.registry import check_registration, register_contract
from penstock.ingestion.topics import ensure_topics
from penstock.pipelines import catalog
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.errors import SettingsError
from penstock.platform.services.schema_registry import open_schema_registry
from penstock.platform.services.stream_catalog import find_stream_error, list_stream_names
from penstock.platform.settings import Settings
from penstock.platform.settings.model import KafkaSettings
from penstock.platform.stack.dagster_home import write_dagster_home
from penstock.platform.stack.database_passwords import write_database_passwords
from penstock.platform.stack.manager import stack_manager
from penstock.platform.stack.preflight import check_machine, check_ports
from penstock.platform.stack.programs import broker_config, stack_programs


class StartupProgress(Protocol):
    """Shows the progress of a start. The function that a step yields takes details."""

    def step(self, description: str) -> AbstractContextManager[ProgressReporter]:
        """Show one step from start to end."""

    def report_skipped(self, description: str) -> None:
        """Show something that the start leaves out."""


def bring_up_stack(settings: Settings, progress: StartupProgress) -> None:
    """Start the whole stack. A second call changes nothing that already runs.

    If the start fails, it stops what this call started. A stack that ran before keeps running.
    """
    manager = stack_manager(settings)
    with progress.step("contracts and pipelines are valid"):
        topics = load_catalog()
        check_stream_names(
            "dagster.nightly_backfills", settings.dagster.nightly_backfills, catalog.pipeline_names()
        )
        check_stream_names("alerts.of", settings.alerts.of, list_stream_names())
        streams = {stream: find_stream_error(stream) for stream in settings.streams}
    broken_topics = {f"topic {topic}": problem for topic, problem in topics.errors_by_topic.items()}
    for subject, problem in {**broken_topics, **streams}.items():
        if problem is not None:
            progress.report_skipped(f"{subject} is skipped until you fix its file: {problem}")
    with progress.step("machine meets the requirements"):
        check_machine(settings)
        check_ports(settings, manager)
    jars = _prepare(settings, progress)
    with _stop_on_failure(manager):
        _ensure_broker(settings, manager, jars, progress)
        with progress.step("topics match their contracts"):
            _ensure_topics(settings.kafka, topics.contracts)
        with progress.step("compare schemas with the registry, and register new ones"):
            incompatible = register_schemas(settings, topics.contracts)
        for topic, problem in incompatible.items():
            progress.report_skipped(f"the schema of topic {topic} is not registered: {problem}")
        _start_programs(manager, stack_programs(settings, jars), progress)


def check_stream_names(setting: str, names: Iterable[str], known_names: Sequence[str]) -> None:
    """Raise SettingsError if a setting names an unknown stream."""
    for name in names:
        if name not in known_names:
            unknown_text = explain_unknown_name("stream", name, known_names, "penstock demo --list")
            raise SettingsError(f"{setting}: {unknown_text}")


def _ensure_topics(kafka: KafkaSettings, contracts: Sequence[Contract]) -> None:
    ensure_topics(
        kafka.bootstrap_servers, contracts, kafka.layout, client_settings=kafka.client_config("topics")
    )


def register_schemas(settings: Settings, contracts: Sequence[Contract]) -> dict[str, IncompatibleChangeError]:
    """Register the schemas of the contracts; return the errors of those that break an earlier version, by topic."""
    registry = open_schema_registry(settings)
    incompatible: dict[str, IncompatibleChangeError] = {}
    for contract in contracts:
        try:
            if check_registration(registry, contract) is not None:
                register_contract(registry, contract)
        except IncompatibleChangeError as error:
            incompatible[contract.topic] = error
    return incompatible


def _prepare(settings: Settings, progress: StartupProgress) -> list[Path]:
    with progress.step("jars match the lock") as show_detail:
        sets = sorted({*RUNTIME_JAR_SETS, *settings.spark_jar_sets})
        ensure_jars(
            settings.jars, sets, progress=lambda done, total, name: show_detail(f"{done} of {total}: {name}")
        )
        jars = ensure_jars(settings.jars, ["kafka"])
    if not settings.kafka.bootstrap:
        with progress.step("broker's folder is formatted"):
            format_storage(broker_config(settings), jars)
    with progress.step("control store and Dagster's home exist"):
        store = open_control_store(settings.control_url, settings.control_secret)
        set_initial_desired(store, settings.streams)
        store.close()
        write_dagster_home(settings)
        write_database_passwords(settings)
    return jars


def set_initial_desired(store: ControlStore, streams: Sequence[str]) -> None:
    """Set the streams of a fresh stack to running; streams that already have a desired state keep it."""
    desired_states = store.read_desired_states()
    for stream in streams:
        if stream not in desired_states:
            store.set_desired_state(stream, DesiredRunState.RUNNING, now_ms())


def _ensure_broker(
    settings: Settings, manager: ProcessManager, jars: list[Path], progress: StartupProgress
) -> None:
    """Start the broker if none answers, with the programs that the manager already has.

    The other programs start after the topics exist.
    """
    if settings.kafka.bootstrap or _is_broker_ready(manager):
        return
    # After an interrupted start the manager may have the broker alone.
    present_names = {"broker", *(status.name for status in manager.list_statuses())}
    programs = [program for program in stack_programs(settings, jars) if program.name in present_names]
    with progress.step(f"broker answers at {settings.kafka.bootstrap_servers}"):
        manager.start(programs, await_names=["broker"])


def _start_programs(manager: ProcessManager, programs: list[Program], progress: StartupProgress) -> None:
    pending_names = {program.name for program in programs}
    with progress.step("feed, host and Dagster are running") as show_detail:

        def mark_ready(name: str) -> None:
            pending_names.discard(name)
            show_detail("waiting for " + ", ".join(sorted(pending_names)))

        manager.start(programs, on_ready=lambda status: mark_ready(status.name))


def _is_broker_ready(manager: ProcessManager) -> bool:
    return any(status.name == "broker" and status.ready for status in manager.list_statuses())


@contextmanager
def _stop_on_failure(manager: ProcessManager) -> Iterator[None]:
    was_running = manager.is_running()
    try:
        yield
    except BaseException:
        if not was_running:
            manager.stop()
        raise
