"""A broker that is bound to the process that starts it: for tests, benchmarks and tools.

`make up` runs its broker under the process manager instead; both use the same configuration and command.
"""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic

from penstock.core.files import read_tail
from penstock.core.waiting import wait_until
from penstock.infra.broker import (
    BrokerConfig,
    broker_command,
    format_storage,
    read_cluster_id,
    wait_for_broker,
)
from penstock.infra.parent_bound import parent_bound_command
from penstock.infra.ports import find_free_ports, require_free_port

STOP_TIMEOUT_S = 15.0
TOPIC_TIMEOUT_S = 30.0


@dataclass
class LocalBroker:
    """One node in a folder of its own, started by `start` and ended by `stop` or at the end of `with`.

    It can be killed and started again in between: data and ports stay. It does not outlive the process
    that started it.
    """

    config: BrokerConfig
    jars: Sequence[Path]
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def in_directory(cls, directory: Path, jars: Sequence[Path], heap_mb: int = 256) -> Self:
        """Create a single node on ports that are free now; does not start it."""
        port, controller_port = find_free_ports(2)
        return cls(BrokerConfig(directory, port, controller_port, heap_mb=heap_mb), jars)

    @property
    def bootstrap(self) -> str:
        """Bootstrap address for clients."""
        return self.config.bootstrap

    @property
    def log_file(self) -> Path:
        """Log file with the output of all starts of the broker."""
        return self.config.directory / "broker.log"

    @property
    def pid(self) -> int:
        """Process id of the started broker."""
        assert self._process is not None, "the broker was not started"
        return self._process.pid

    def start(self) -> Self:
        """Start the broker and return when it answers; on failure nothing keeps running."""
        for port in (self.config.port, self.config.controller_port):
            require_free_port(self.config.host, port, "the broker")
        format_storage(self.config, self.jars)
        with self.log_file.open("ab") as log_stream:
            command = parent_bound_command(broker_command(self.config, self.jars))
            self._process = subprocess.Popen(command, stdout=log_stream, stderr=subprocess.STDOUT)
        try:
            wait_for_broker(self.bootstrap, cluster_id=read_cluster_id(self.config), is_alive=self._is_alive)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stop the broker, by force after a timeout. Does nothing if it is not running."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """Kill the broker like a crash: nothing is flushed, and clients are not notified."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def create_topic(self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        """Create a topic and return when the broker shows it; raise an error if the topic exists."""
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        topic = NewTopic(name, partitions, 1, config=dict(settings or {}))
        client.create_topics([topic], operation_timeout=TOPIC_TIMEOUT_S)[name].result(TOPIC_TIMEOUT_S)
        # The controller has the topic by now, but a client of the broker may not see it yet.
        description = f"the broker at {self.bootstrap} to show the new topic {name}"
        wait_until(lambda: _count_led_partitions(client, name) >= partitions, TOPIC_TIMEOUT_S, description)

    def read_log_tail(self, lines: int = 60) -> str:
        """Return the end of the broker's log."""
        return read_tail(self.log_file, lines)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None


def _count_led_partitions(client: AdminClient, topic: str) -> int:
    """Return how many partitions of a topic have a leader according to the broker."""
    metadata = client.list_topics(topic, timeout=TOPIC_TIMEOUT_S).topics[topic]
    return sum(partition.leader >= 0 for partition in metadata.partitions.values())
