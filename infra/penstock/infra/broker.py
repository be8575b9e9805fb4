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

from penstock.core.files import write_atomically
from penstock.core.waiting import wait_until
from penstock.infra.errors import BrokerError
from penstock.infra.java import find_java
from penstock.infra.ports import LOCALHOST, accepts_connections

LOG_CONFIG_FILE = Path(__file__).with_name("log4j2-broker.xml")
FORMAT_TIMEOUT_S = 60.0


def new_kafka_id() -> str:
    """Create an id for a cluster or for a node's folder, in Kafka's format.

    No id starts with a dash: on a command line it would be parsed as an option.
    """
    while True:
        kafka_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not kafka_id.startswith("-"):
            return kafka_id


@dataclass(frozen=True)
class QuorumVoter:
    """One voter of a cluster's metadata quorum, as the other nodes must know it."""

    node_id: int
    host: str
    port: int
    directory_id: str

    @property
    def address(self) -> str:
        """Address at which the other nodes reach this voter."""
        return f"{self.host}:{self.port}"

    @property
    def initial_controller(self) -> str:
        """The voter in the format of Kafka's storage tool."""
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
    voters: tuple[QuorumVoter, ...] = ()
    heap_mb: int = 256
    properties: tuple[tuple[str, str], ...] = field(default=())
    """Additional server properties; they override the computed ones."""

    @property
    def bootstrap(self) -> str:
        """Bootstrap address for clients."""
        return f"{self.host}:{self.port}"

    @property
    def data_directory(self) -> Path:
        """Folder of topics and metadata."""
        return self.directory / "data"

    @property
    def properties_file(self) -> Path:
        """The node's configuration, written by format_storage."""
        return self.directory / "server.properties"

    @property
    def format_marker(self) -> Path:
        """File with the cluster id; exists only after formatting has finished."""
        return self.directory / "formatted"


def server_properties(config: BrokerConfig) -> dict[str, str]:
    """Compute the node's properties. All listeners bind to the config's host only."""
    replication_factor = str(min(3, max(1, len(config.voters))))
    min_in_sync = "2" if len(config.voters) > 2 else "1"
    controllers = [voter.address for voter in config.voters] or [f"{config.host}:{config.controller_port}"]
    return {
        "process.roles": "broker,controller",
        "node.id": str(config.node_id),
        "listeners": f"PLAINTEXT://{config.bootstrap},CONTROLLER://{config.host}:{config.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{config.bootstrap}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.quorum.bootstrap.servers": ",".join(controllers),
        "log.dirs": str(config.data_directory),
        "auto.create.topics.enable": "false",  # topics are declared in contracts; a typo must not create one
        "default.replication.factor": replication_factor,
        "min.insync.replicas": min_in_sync,
        "offsets.topic.replication.factor": replication_factor,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": replication_factor,
        "transaction.state.log.min.isr": min_in_sync,
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": replication_factor,
        "share.coordinator.state.topic.min.isr": min_in_sync,
        "group.initial.rebalance.delay.ms": "0",
        # A killed node may rejoin only after its old session expires: 9 s by default.
        "broker.session.timeout.ms": "3000" if not config.voters else "9000",
        "broker.heartbeat.interval.ms": "500" if not config.voters else "2000",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),  # its default is half of a small heap
        **dict(config.properties),
    }


def broker_command(config: BrokerConfig, jars: Sequence[Path]) -> list[str]:
    """Return the command that runs the node in the foreground; SIGTERM shuts it down cleanly."""
    return [*_java_command(config.heap_mb, jars), "kafka.Kafka", str(config.properties_file)]


def format_command(config: BrokerConfig, cluster_id: str, jars: Sequence[Path]) -> list[str]:
    """Return the command that prepares the node's data folder."""
    voters = ",".join(voter.initial_controller for voter in config.voters)
    quorum_options = ["--initial-controllers", voters] if config.voters else ["--standalone"]
    # An id from elsewhere may start with a dash; as a separate argument it would be parsed as an option.
    options = [
        f"--cluster-id={cluster_id}",
        "-c",
        str(config.properties_file),
        "--ignore-formatted",
        *quorum_options,
    ]
    return [*_java_command(128, jars), "kafka.tools.StorageTool", "format", *options]


def format_storage(config: BrokerConfig, jars: Sequence[Path]) -> None:
    """Write the node's configuration, and prepare its data folder unless that was done before.

    An interrupted preparation starts again; data written by a broker is never removed.
    """
    try:
        config.data_directory.mkdir(parents=True, exist_ok=True)
        write_atomically(config.properties_file, _format_properties(server_properties(config)))
        if not config.format_marker.exists():
            _refuse_unmarked_topics(config)
            shutil.rmtree(config.data_directory)
            cluster_id = config.cluster_id or new_kafka_id()
            _run_format(config, cluster_id, jars)
            write_atomically(config.format_marker, cluster_id + "\n")
    except OSError as error:
        raise BrokerError(
            f"The broker's folder {config.directory} cannot be prepared: {error.strerror}. "
            "Make it writable, with some space free, and try again."
        ) from error


def wait_for_broker(
    bootstrap: str,
    timeout_s: float = 60.0,
    min_brokers: int = 1,
    cluster_id: str | None = None,
    is_alive: Callable[[], bool] = lambda: True,
    client_config: Mapping[str, str] | None = None,
) -> None:
    """Return once the cluster answers a client and shows that many brokers.

    With `cluster_id`, a broker of another cluster that has the port does not count. `client_config` has the
    client settings of a secured broker. Raises BrokerError as soon as `is_alive` returns false, and
    WaitTimeoutError after the timeout.
    """
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    # Without the log level, librdkafka writes each refused connection to stderr.
    admin_config = {"bootstrap.servers": bootstrap, "log_level": "0", **(client_config or {})}

    def is_ready() -> bool:
        if not is_alive():
            raise BrokerError(f"The broker at {bootstrap} exited during startup. See its log.")
        return (
            accepts_connections(host, int(port))
            and _count_live_brokers(admin_config, cluster_id) >= min_brokers
        )

    wait_until(is_ready, timeout_s, f"{min_brokers} broker(s) to answer at {bootstrap}")


def read_cluster_id(config: BrokerConfig) -> str | None:
    """Return the cluster id of the node's data; None before formatting."""
    return config.format_marker.read_text("utf-8").strip() if config.format_marker.exists() else None


def _count_live_brokers(admin_config: Mapping[str, str], cluster_id: str | None) -> int:
    client = AdminClient(dict(admin_config))
    try:
        metadata = client.list_topics(timeout=2.0)
    except KafkaException:
        return 0
    return len(metadata.brokers) if cluster_id in (None, metadata.cluster_id) else 0


def _java_command(heap_mb: int, jars: Sequence[Path]) -> list[str]:
    return [
        str(find_java().command),
        f"-Xms{min(heap_mb, 128)}m",
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={LOG_CONFIG_FILE}",
        "-cp",
        ":".join(str(jar) for jar in jars),
    ]


def _run_format(config: BrokerConfig, cluster_id: str, jars: Sequence[Path]) -> None:
    command = format_command(config, cluster_id, jars)
    result = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False)
    if result.returncode:
        output_lines = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
        last_line = output_lines[-1] if output_lines else "it said nothing"
        raise BrokerError(f"Kafka's storage tool could not prepare {config.data_directory}: {last_line}.")


def _refuse_unmarked_topics(config: BrokerConfig) -> None:
    topic_directories = [
        path.name for path in config.data_directory.glob("*-[0-9]*") if path.name != "__cluster_metadata-0"
    ]
    if topic_directories:
        raise BrokerError(
            f"{config.data_directory} holds topics "
            f"({topic_directories[0]}, {len(topic_directories)} folders in all) "
            f"and {config.format_marker} is missing, so it is not known whose they are. "
            "Move the folder away to begin with an empty broker."
        )


def _format_properties(properties: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())
