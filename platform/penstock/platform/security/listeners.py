"""Every listener of every way to run Penstock: its port, who reaches it, and what it asks for.

The security page prints this table, and tests compare it with the sockets of real processes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.platform.security.port_rules import AnyFreePort, FixedPort, PortRule, SettingPort

Profile = Literal["penstock up", "env local", "docker", "env aws", "ingest", "nginx"]
"""What starts the listener: a command, an environment, the compose file, or nginx."""

Reach = Literal["loopback", "setting", "containers", "VPC", "network"]
"""Where callers may be. `setting`: on loopback unless a setting names another address."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener of a program."""

    profile: Profile
    program: str
    """The name of the program, container or task."""
    port: PortRule
    reach: Reach
    serves: str
    asks_for: str
    """What a caller must know or be, apart from being within reach."""


_NOTHING = "nothing"
_OWN_PAGES = "nothing; refuses foreign web pages and `Host` names"
_SPARK_SECRET = "Spark's secret, if there is one"  # noqa: S105  not a secret
_PY4J_TOKEN = "a token of this process"  # noqa: S105  not a secret
_METRICS_TOKEN = "a bearer token from other machines; refuses foreign web pages"  # noqa: S105  not a secret
_KAFKA_LOGIN = "with `secured`: a log-in (SCRAM over TLS)"
_NODE_CERTIFICATE = "with `secured`: the certificate of a node"

LISTENERS: Sequence[Listener] = (
    Listener("penstock up", "broker", SettingPort("kafka.port"), "loopback", "Kafka", _NOTHING),
    Listener(
        "penstock up",
        "broker",
        SettingPort("kafka.controller_port"),
        "loopback",
        "Kafka's controller",
        _NOTHING,
    ),
    Listener(
        "penstock up", "code", SettingPort("dagster.code_port"), "loopback", "Dagster's code, gRPC", _NOTHING
    ),
    Listener("penstock up", "code", AnyFreePort(), "loopback", "Spark of runs, as in `host`", _SPARK_SECRET),
    Listener(
        "penstock up",
        "console",
        SettingPort("console.port"),
        "loopback",
        "the web console",
        _OWN_PAGES,
    ),
    Listener(
        "penstock up",
        "webserver",
        SettingPort("dagster.port"),
        "loopback",
        "Dagster's UI and API",
        _OWN_PAGES,
    ),
    Listener(
        "penstock up",
        "viewer",
        SettingPort("dagster.viewer_port"),
        "loopback",
        "Dagster's UI and API, read-only",
        _OWN_PAGES,
    ),
    Listener(
        "penstock up",
        "host",
        SettingPort("host.metrics_port"),
        "setting",
        "metrics, health, quality pages",
        _METRICS_TOKEN,
    ),
    Listener(
        "penstock up", "host", AnyFreePort(), "loopback", "Spark's driver: RPC and blocks", _SPARK_SECRET
    ),
    Listener("penstock up", "host", AnyFreePort(), "loopback", "py4j between Python and Java", _PY4J_TOKEN),
    Listener("env local", "broker", SettingPort("first_port", 1, 9), "loopback", "Kafka", _KAFKA_LOGIN),
    Listener(
        "env local",
        "broker",
        SettingPort("first_port", 11, 19),
        "loopback",
        "Kafka's controllers",
        _NODE_CERTIFICATE,
    ),
    Listener(
        "env local",
        "broker",
        SettingPort("first_port", 21, 29),
        "loopback",
        "Kafka between brokers, with `secured`",
        _NODE_CERTIFICATE,
    ),
    Listener(
        "env local",
        "spark-master",
        SettingPort("first_port", 30, 30),
        "loopback",
        "Spark's master, RPC",
        "with `secured`: Spark's secret",
    ),
    Listener(
        "env local",
        "spark-master",
        SettingPort("first_port", 31, 31),
        "loopback",
        "pages of the master; they change nothing",
        _NOTHING,
    ),
    Listener(
        "env local",
        "spark-worker",
        SettingPort("first_port", 41, 49),
        "loopback",
        "a worker, RPC",
        "with `secured`: Spark's secret",
    ),
    Listener(
        "env local",
        "spark-worker",
        SettingPort("first_port", 51, 59),
        "loopback",
        "pages of a worker; they change nothing",
        _NOTHING,
    ),
    Listener(
        "env local",
        "spark-worker",
        AnyFreePort(),
        "loopback",
        "executors: RPC and blocks",
        "with `secured`: Spark's secret",
    ),
    Listener("docker", "kafka", FixedPort(9092), "containers", "Kafka", _NOTHING),
    Listener("docker", "kafka", FixedPort(9093), "containers", "Kafka's controllers", _NOTHING),
    Listener("docker", "spark-master", FixedPort(7077), "containers", "Spark's master, RPC", _NOTHING),
    Listener(
        "docker",
        "spark-master",
        FixedPort(8080),
        "containers",
        "pages of the master; they change nothing",
        _NOTHING,
    ),
    Listener("docker", "spark-worker", FixedPort(8081), "containers", "pages of a worker", _NOTHING),
    Listener(
        "docker",
        "spark-worker",
        AnyFreePort(),
        "containers",
        "workers and executors: RPC and blocks",
        _NOTHING,
    ),
    Listener("docker", "host", FixedPort(9464), "setting", "metrics, health, quality pages", _METRICS_TOKEN),
    Listener("docker", "host", AnyFreePort(), "containers", "Spark's driver: RPC and blocks", _NOTHING),
    Listener("docker", "code", FixedPort(4000), "containers", "Dagster's code, gRPC", _NOTHING),
    Listener("docker", "code", AnyFreePort(), "containers", "Spark of runs, as in `host`", _NOTHING),
    Listener(
        "docker",
        "webserver",
        FixedPort(3000),
        "containers",
        "Dagster's UI and API; published on this machine's loopback",
        _OWN_PAGES,
    ),
    Listener("docker", "postgres", FixedPort(5432), "containers", "the control store", "a password"),
    Listener("env aws", "code", FixedPort(4000), "VPC", "Dagster's code, gRPC", "the group of the webserver"),
    Listener(
        "env aws",
        "webserver",
        FixedPort(3000),
        "VPC",
        "Dagster's UI and API",
        "the group `keepers`; refuses foreign web pages and `Host` names",
    ),
    Listener("env aws", "host", FixedPort(9464), "loopback", "metrics, health", _NOTHING),
    Listener(
        "ingest",
        "http",
        SettingPort("--address"),
        "setting",
        "records by HTTP push",
        "`--token` beyond loopback",
    ),
    Listener(
        "nginx",
        "nginx",
        FixedPort(8443),
        "network",
        "Dagster's UI and API",
        "a name and a password, over TLS",
    ),
)


def list_listeners(profile: Profile, program: str) -> list[Listener]:
    """Return the declared listeners of a program."""
    return [one for one in LISTENERS if (one.profile, one.program) == (profile, program)]
