"""A real Kafka broker on this machine: KRaft, no ZooKeeper, one node or several that form a cluster.

Deciding (configuration, commands) is apart from doing (formatting, waiting). Who runs the command is for
the caller: the process manager for `make up`, a fixture for the tests.
"""

import base64
import shutil
import subprocess
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.infra.errors import BrokerError
from penstock.infra.java import find_java
from penstock.infra.ports import LOCALHOST, answers
from penstock.infra.waiting import wait_until

LOGGING = Path(__file__).with_name("log4j2-broker.xml")
FORMAT_SECONDS = 60.0


def new_id() -> str:
    """Make an id for a cluster or for a node's folder, in the form that Kafka takes.

    None begins with a dash: as a word of its own on a command line it would be taken for an option.
    """
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not made.startswith("-"):
            return made


@dataclass(frozen=True)
class Controller:
    """One voter of a cluster's metadata quorum, as the other nodes must know it."""

    node_id: int
    host: str
    port: int
    directory_id: str

    @property
    def address(self) -> str:
        """Where the other nodes reach it."""
        return f"{self.host}:{self.port}"

    @property
    def voter(self) -> str:
        """The form in which Kafka's storage tool takes a first voter."""
        return f"{self.node_id}@{self.address}:{self.directory_id}"


@dataclass(frozen=True)
class BrokerConfig:
    """What makes one node: it is broker and controller at once.

    `directory` is the node's own and holds all that it writes. Without `cluster` the node stands alone.
    With it, the nodes' voters are listed, this one's among them, and topics have a copy on up to three.
    """

    directory: Path
    port: int
    controller_port: int
    host: str = LOCALHOST
    node_id: int = 1
    cluster_id: str = ""
    cluster: tuple[Controller, ...] = ()
    heap_mb: int = 256
    properties: tuple[tuple[str, str], ...] = field(default=())
    """Further lines of the server's configuration; they win over what is decided here."""

    @property
    def bootstrap(self) -> str:
        """What a client is given to find this node."""
        return f"{self.host}:{self.port}"

    @property
    def data(self) -> Path:
        """Where the node keeps topics and metadata."""
        return self.directory / "data"

    @property
    def file(self) -> Path:
        """The node's configuration, written by format_storage."""
        return self.directory / "server.properties"

    @property
    def formatted(self) -> Path:
        """Stands only when formatting came to its end; holds the id of the cluster."""
        return self.directory / "formatted"


def server_properties(config: BrokerConfig) -> dict[str, str]:
    """Decide the node's configuration. Everything listens on the config's host, and nowhere else."""
    replicas = str(min(3, max(1, len(config.cluster))))
    in_sync = "2" if len(config.cluster) > 2 else "1"
    controllers = [voter.address for voter in config.cluster] or [f"{config.host}:{config.controller_port}"]
    return {
        "process.roles": "broker,controller",
        "node.id": str(config.node_id),
        "listeners": f"PLAINTEXT://{config.bootstrap},CONTROLLER://{config.host}:{config.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{config.bootstrap}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.bootstrap.servers": ",".join(controllers),
        "log.dirs": str(config.data),
        "auto.create.topics.enable": "false",  # topics are code: a typing error must not make one
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": "0",
        # A killed node is let in again only when its old session is over: 9 s by default.
        "broker.session.timeout.ms": "3000" if not config.cluster else "9000",
        "broker.heartbeat.interval.ms": "500" if not config.cluster else "2000",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),  # its default is half of a small heap
        **dict(config.properties),
    }


def broker_command(config: BrokerConfig, jars: Sequence[Path]) -> list[str]:
    """Return the command that runs the node in the foreground; SIGTERM stops it in order."""
    return [*_java(config.heap_mb, jars), "kafka.Kafka", str(config.file)]


def format_command(config: BrokerConfig, cluster_id: str, jars: Sequence[Path]) -> list[str]:
    """Return the command that prepares the node's data folder."""
    voters = ",".join(voter.voter for voter in config.cluster)
    first = ["--initial-controllers", voters] if config.cluster else ["--standalone"]
    # An identifier from elsewhere may begin with a dash: as a word of its own it would be taken for an option.
    options = [f"--cluster-id={cluster_id}", "-c", str(config.file), "--ignore-formatted", *first]
    return [*_java(128, jars), "kafka.tools.StorageTool", "format", *options]


def format_storage(config: BrokerConfig, jars: Sequence[Path]) -> None:
    """Write the node's configuration, and prepare its data folder unless that was done before.

    A preparation that was cut off is begun anew; data that a broker has written are never removed.
    """
    try:
        config.data.mkdir(parents=True, exist_ok=True)
        _write(config.file, _as_text(server_properties(config)))
        if not config.formatted.exists():
            _refuse_written_data(config)
            shutil.rmtree(config.data)
            cluster_id = config.cluster_id or new_id()
            _run_format(config, cluster_id, jars)
            _write(config.formatted, cluster_id + "\n")
    except OSError as error:
        raise BrokerError(
            f"The broker's folder {config.directory} cannot be prepared: {error.strerror}. "
            "Make it writable, with some space free, and try again."
        ) from error


def wait_for_broker(
    bootstrap: str,
    seconds: float = 60.0,
    brokers: int = 1,
    cluster_id: str | None = None,
    alive: Callable[[], bool] = lambda: True,
    client: Mapping[str, str] | None = None,
) -> None:
    """Return once the cluster answers a client and shows that many brokers.

    With `cluster_id`, a broker of another cluster that has the port does not count. `client` is what a
    secured broker wants of a client. Raises BrokerError
    as soon as `alive` says that the broker's process is gone, NotInTimeError when the time is over.
    """
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    # Without the log level, librdkafka writes each refused connection to stderr.
    settings = {"bootstrap.servers": bootstrap, "log_level": "0", **(client or {})}

    def ready() -> bool:
        if not alive():
            raise BrokerError(f"The broker at {bootstrap} ended while it started; its log says why.")
        return answers(host, int(port)) and _live_brokers(settings, cluster_id) >= brokers

    wait_until(ready, seconds, f"{brokers} broker(s) to answer at {bootstrap}")


def cluster_id_of(config: BrokerConfig) -> str | None:
    """Return the id of the cluster that the node's data belong to; None before it was formatted."""
    return config.formatted.read_text("utf-8").strip() if config.formatted.exists() else None


def _live_brokers(settings: Mapping[str, str], cluster_id: str | None) -> int:
    client = AdminClient(dict(settings))
    try:
        answer = client.list_topics(timeout=2.0)
    except KafkaException:
        return 0
    return len(answer.brokers) if cluster_id in (None, answer.cluster_id) else 0


def _java(heap_mb: int, jars: Sequence[Path]) -> list[str]:
    return [
        str(find_java().command),
        f"-Xms{min(heap_mb, 128)}m",
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={LOGGING}",
        "-cp",
        ":".join(str(jar) for jar in jars),
    ]


def _run_format(config: BrokerConfig, cluster_id: str, jars: Sequence[Path]) -> None:
    command = format_command(config, cluster_id, jars)
    done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_SECONDS, check=False)
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        last = said[-1] if said else "it said nothing"
        raise BrokerError(f"Kafka's storage tool could not prepare {config.data}: {last}.")


def _refuse_written_data(config: BrokerConfig) -> None:
    topics = [path.name for path in config.data.glob("*-[0-9]*") if path.name != "__cluster_metadata-0"]
    if topics:
        raise BrokerError(
            f"{config.data} holds topics ({topics[0]}, {len(topics)} folders in all) and "
            f"{config.formatted} is missing, so it is not known whose they are. "
            "Move the folder away to begin with an empty broker."
        )


def _as_text(properties: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _write(path: Path, text: str) -> None:
    written = path.with_suffix(".new")
    written.write_text(text, "utf-8")
    written.replace(path)
