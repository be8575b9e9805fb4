"""The programs of the local stack as data, built from the settings."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.infra.broker import BrokerConfig, broker_command
from penstock.infra.processes import Program
from penstock.ingestion.contracts import load_catalog
from penstock.platform.settings import Settings
from penstock.platform.settings.environment_variables import (
    CONSOLE_SECTIONS,
    HOST_SECTIONS,
    LOCATION_SECTIONS,
    settings_to_variables,
)
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.settings.naming import variable_name
from penstock.platform.stack.dagster_home import (
    CODE_LOCATION,
    CODE_LOCATION_MODULE,
    dagster_home,
    workspace_file,
)
from penstock.platform.stack.database_passwords import (
    database_password_variables,
    hide_database_passwords,
)

CLI_COMMAND = (sys.executable, "-m", "penstock.platform.cli")

FEED_TOPIC = "sensors"
"""The topic that the sample feed writes to."""

DAEMON_MODULE = "penstock.platform.stack.dagster_daemon"
CODE_SERVER_MODULE = "penstock.platform.stack.code_server"
WEBSERVER_MODULE = "penstock.infra.dagster_webserver"

# A program stops before the programs that it depends on: the feed first, the broker last.
BROKER_START_ORDER, DAGSTER_START_ORDER, CONSOLE_START_ORDER = 10, 40, 50
HOST_START_ORDER, FEED_START_ORDER = 60, 70

_DAGSTER_SECTIONS = (*LOCATION_SECTIONS, "kafka", "dagster")
_RUN_SECTIONS = (*_DAGSTER_SECTIONS, "spark", "host", "maintenance", "alerts")


def broker_config(settings: Settings) -> BrokerConfig:
    """Return the configuration of the local broker."""
    kafka = settings.kafka
    return BrokerConfig(settings.home / "kafka", kafka.port, kafka.controller_port, heap_mb=kafka.heap_mb)


def stack_programs(settings: Settings, jars: Sequence[Path]) -> list[Program]:
    """Return every program of the stack in start order; the feed only if its topic has a valid contract."""
    password_variables = database_password_variables(settings)
    settings = hide_database_passwords(settings)
    local_programs = [] if settings.kafka.bootstrap else [broker_program(settings, jars)]
    feeds = (
        [feed_program(settings)]
        if settings.feed.enabled and FEED_TOPIC not in load_catalog().errors_by_topic
        else []
    )
    clients = [
        *dagster_programs(settings),
        console_program(settings),
        host_program(settings),
        *feeds,
    ]
    return [
        *local_programs,
        *(replace(program, environment={**program.environment, **password_variables}) for program in clients),
    ]


def broker_program(settings: Settings, jars: Sequence[Path]) -> Program:
    """Return the broker program. Acknowledged records are on disk even if the broker is killed."""
    config = broker_config(settings)
    return Program(
        "broker",
        tuple(broker_command(config, jars)),
        start_order=BROKER_START_ORDER,
        stop_seconds=8.0,
        answers_at=(config.host, config.port),
    )


def host_program(settings: Settings) -> Program:
    """Return the stream host program. When stopped, it finishes the batches in flight."""
    return Program(
        "host",
        (*CLI_COMMAND, "host", "run"),
        environment=settings_to_variables(settings, HOST_SECTIONS),
        start_order=HOST_START_ORDER,
        stop_seconds=8.0,
        waits_for=_broker_address(settings),
        answers_at=(settings.host.local_metrics_address, settings.host_metrics_port)
        if settings.host_metrics_port
        else None,
        reports_ready=True,
    )


def console_program(settings: Settings) -> Program:
    """Return the web console."""
    return Program(
        "console",
        (*CLI_COMMAND, "console"),
        environment=settings_to_variables(settings, CONSOLE_SECTIONS),
        start_order=CONSOLE_START_ORDER,
        answers_at=(LOOPBACK, settings.console.port),
    )


def feed_program(settings: Settings) -> Program:
    """Return the feed of sensor readings. After a restart it resumes from its ledger."""
    options = ("--rate", f"{settings.feed.rate:g}", "--seed", str(settings.feed.seed))
    return Program(
        "feed",
        (*CLI_COMMAND, "ingest", FEED_TOPIC, *options),
        environment=settings_to_variables(settings, (*LOCATION_SECTIONS, "kafka")),
        start_order=FEED_START_ORDER,
        waits_for=_broker_address(settings),
        reports_ready=True,
    )


def dagster_programs(settings: Settings) -> list[Program]:
    """Return Dagster's code server, webserver and daemon; the last two start when the code server answers."""
    environment = {
        **settings_to_variables(settings, _DAGSTER_SECTIONS),
        variable_name("console.url"): settings.console.url or settings.console_url,
        "DAGSTER_HOME": str(dagster_home(settings)),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "PYTHONUNBUFFERED": "1",
    }
    port = settings.dagster.code_port
    server_arguments = ("code-server", "start", "-m", CODE_LOCATION_MODULE, "-h", LOOPBACK, "-p", str(port))
    code_address = (LOOPBACK, port)
    viewer_port = settings.dagster.viewer_port
    viewer_programs = (
        [_webserver_program("viewer", settings, environment, viewer_port, "--read-only")]
        if viewer_port
        else []
    )
    return [
        Program(
            "code",
            (sys.executable, "-m", CODE_SERVER_MODULE, *server_arguments, "--location-name", CODE_LOCATION),
            # Runs are child processes of the code server: replays start Spark, maintenance needs retention times.
            environment=environment | settings_to_variables(settings, _RUN_SECTIONS),
            start_order=DAGSTER_START_ORDER,
            answers_at=code_address,
        ),
        _webserver_program("webserver", settings, environment, settings.dagster.port),
        *viewer_programs,
        Program(
            "daemon",
            (sys.executable, "-m", DAEMON_MODULE, "run", "-w", str(workspace_file(settings))),
            environment=environment,
            start_order=DAGSTER_START_ORDER + 1,
            waits_for=(code_address,),
            reports_ready=True,
        ),
    ]


def _webserver_program(
    name: str, settings: Settings, environment: Mapping[str, str], port: int, *extra_arguments: str
) -> Program:
    hosts = [argument for name in settings.dagster.hosts for argument in ("--allow-host", name)]
    arguments = (
        *hosts,
        "-h",
        LOOPBACK,
        "-p",
        str(port),
        "-w",
        str(workspace_file(settings)),
        *extra_arguments,
    )
    return Program(
        name,
        (sys.executable, "-m", WEBSERVER_MODULE, *arguments),
        environment=environment,
        start_order=DAGSTER_START_ORDER + 1,
        waits_for=((LOOPBACK, settings.dagster.code_port),),
        answers_at=(LOOPBACK, port),
    )


def _broker_address(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Return the address of the first bootstrap server."""
    name, _, port = settings.kafka.bootstrap_servers.split(",")[0].rpartition(":")
    return ((name, int(port)),)
