"""A broker that belongs to the process that starts it: for tests, benchmarks and tools.

`make up` runs its broker under the process manager instead; both use the same configuration and command.
"""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic

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
        """Make a single node on ports that are free now; nothing is started yet."""
        port, controller_port = find_free_ports(2)
        return cls(BrokerConfig(directory, port, controller_port, heap_mb=heap_mb), jars)

    @property
    def bootstrap(self) -> str:
        """What a client is given to find the broker."""
        return self.config.bootstrap

    @property
    def log_file(self) -> Path:
        """Where the broker's output goes, over all its starts."""
        return self.config.directory / "broker.log"

    @property
    def pid(self) -> int:
        """The broker's process id; asking for it of a stopped broker is a mistake."""
        assert self._process is not None, "the broker was not started"
        return self._process.pid

    def start(self) -> Self:
        """Start the broker and return once it answers; on failure nothing is left running."""
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
        """End the broker in order, or by force where it does not end in time. Twice is no harm."""
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
        """End the broker as a crash would: nothing is flushed, nobody is told."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def create_topic(self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        """Create a topic, and return once the broker has it. A topic that is there already is an error."""
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        topic = NewTopic(name, partitions, 1, config=dict(settings or {}))
        client.create_topics([topic], operation_timeout=TOPIC_TIMEOUT_S)[name].result(TOPIC_TIMEOUT_S)
        # The controller has it by then; who asks the broker may still be told that there is none.
        description = f"the broker at {self.bootstrap} to show the topic {name}, which it has made"
        wait_until(lambda: _count_led_partitions(client, name) >= partitions, TOPIC_TIMEOUT_S, description)

    def read_log_tail(self, lines: int = 60) -> str:
        """Return the end of the broker's log."""
        text = self.log_file.read_text("utf-8", "replace") if self.log_file.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None


def _count_led_partitions(client: AdminClient, topic: str) -> int:
    """How many partitions of a topic have a leader, as the broker says."""
    metadata = client.list_topics(topic, timeout=TOPIC_TIMEOUT_S).topics[topic]
    return sum(partition.leader >= 0 for partition in metadata.partitions.values())
