"""The programs that the local stack is made of, as data, from the settings."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.infra.broker import BrokerConfig, broker_command
from penstock.infra.processes import Program
from penstock.ingestion.contracts import declared
from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.settings.variables import FOR_HOST, PLACES, as_variables
from penstock.platform.stack.dagster_home import LOCATION, MODULE, dagster_home, workspace_file

PENSTOCK = (sys.executable, "-m", "penstock.platform.cli")

FED = "sensors"
"""The topic that the feed of a fresh stack writes to."""

DAEMON = "penstock.platform.stack.dagster_daemon"
CODE_SERVER = "penstock.platform.stack.code_server"

# What is fed by another stops before it: the feed first, the broker last.
BROKER_ORDER, DAGSTER_ORDER, HOST_ORDER, FEED_ORDER = 10, 40, 60, 70

_FOR_DAGSTER = (*PLACES, "kafka", "dagster")
_FOR_RUNS = (*_FOR_DAGSTER, "spark", "host", "maintenance", "alerts")


def broker_config(settings: Settings) -> BrokerConfig:
    """The local broker."""
    kafka = settings.kafka
    return BrokerConfig(settings.home / "kafka", kafka.port, kafka.controller_port, heap_mb=kafka.heap_mb)


def stack_programs(settings: Settings, jars: Sequence[Path]) -> list[Program]:
    """Every program of the stack, in the order in which they are of use; no feed of a topic without a contract."""
    local = [] if settings.kafka.bootstrap else [broker(settings, jars)]
    feeds = [feed(settings)] if settings.feed.enabled and FED not in declared().broken else []
    return [*local, *dagster(settings), host(settings), *feeds]


def broker(settings: Settings, jars: Sequence[Path]) -> Program:
    """The broker; what it acknowledged is on disk, also when it is ended by force."""
    config = broker_config(settings)
    return Program(
        "broker",
        tuple(broker_command(config, jars)),
        start_order=BROKER_ORDER,
        stop_seconds=8.0,
        answers_at=(config.host, config.port),
    )


def host(settings: Settings) -> Program:
    """The stream host; its command is told to finish the batches in flight when it is stopped."""
    return Program(
        "host",
        (*PENSTOCK, "host", "run"),
        environment=as_variables(settings, FOR_HOST),
        start_order=HOST_ORDER,
        stop_seconds=8.0,
        waits_for=_broker_address(settings),
        answers_at=(LOOPBACK, settings.host_port) if settings.host_port else None,
        tells_ready=True,
    )


def feed(settings: Settings) -> Program:
    """The feed of sensor readings; it goes on where its ledger ended."""
    options = ("--rate", f"{settings.feed.rate:g}", "--seed", str(settings.feed.seed))
    return Program(
        "feed",
        (*PENSTOCK, "ingest", FED, *options),
        environment=as_variables(settings, (*PLACES, "kafka")),
        start_order=FEED_ORDER,
        waits_for=_broker_address(settings),
        tells_ready=True,
    )


def dagster(settings: Settings) -> list[Program]:
    """Dagster's code server, webserver and daemon; the last two begin when there is code to show."""
    environment = {
        **as_variables(settings, _FOR_DAGSTER),
        "DAGSTER_HOME": str(dagster_home(settings)),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "PYTHONUNBUFFERED": "1",
    }
    port = settings.dagster.code_port
    serve = ("code-server", "start", "-m", MODULE, "-h", LOOPBACK, "-p", str(port))
    code = (LOOPBACK, port)
    viewer = settings.dagster.viewer_port
    viewers = [_webserver("viewer", settings, environment, viewer, "--read-only")] if viewer else []
    return [
        Program(
            "code",
            (sys.executable, "-m", CODE_SERVER, *serve, "--location-name", LOCATION),
            # Runs are its children: replays start Spark, maintenance knows what is old.
            environment=environment | as_variables(settings, _FOR_RUNS),
            start_order=DAGSTER_ORDER,
            answers_at=code,
        ),
        _webserver("webserver", settings, environment, settings.dagster.port),
        *viewers,
        Program(
            "daemon",
            (sys.executable, "-m", DAEMON, "run", "-w", str(workspace_file(settings))),
            environment=environment,
            start_order=DAGSTER_ORDER + 1,
            waits_for=(code,),
            tells_ready=True,
        ),
    ]


def _webserver(
    name: str, settings: Settings, environment: Mapping[str, str], port: int, *more: str
) -> Program:
    show = ("-h", LOOPBACK, "-p", str(port), "-w", str(workspace_file(settings)), *more)
    return Program(
        name,
        (sys.executable, "-m", "dagster_webserver", *show),
        environment=environment,
        start_order=DAGSTER_ORDER + 1,
        waits_for=((LOOPBACK, settings.dagster.code_port),),
        answers_at=(LOOPBACK, port),
    )


def _broker_address(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Where the first of the bootstrap servers is to answer."""
    name, _, port = settings.kafka.servers.split(",")[0].rpartition(":")
    return ((name, int(port)),)
