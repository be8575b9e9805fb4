"""Has a home live through rounds: in each one records are sent, and every pipeline reads them in one batch."""

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer
from tests.golden.home import GoldenHome
from tests.golden.records import MALFORMED
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.engine.host.control import DesiredRunState
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.control.reports import read_batch_history

TOPICS = ("readings", "limits")
PARTITIONS = 2
PIPELINES: Mapping[str, Iterable[str]] = {"measurements": TOPICS, "unique_measurements": ("readings",)}
ARCHIVES: Mapping[str, Iterable[str]] = {"archive-readings": ("readings",), "archive-limits": ("limits",)}
"""The streams of the home, and the topics that each reads."""


def live_through(home: GoldenHome, rounds: range) -> None:
    """Run the host while the records of these rounds are sent, and drain it when every stream has read them."""
    with _open_store(home) as store, home.run_host() as host:
        living = LivingHome(home, store, host)
        living.request(ARCHIVES, DesiredRunState.RUNNING)
        for number in rounds:
            living.bring_pipelines_to(DesiredRunState.PAUSED)
            living.send_records(number)
            living.bring_pipelines_to(DesiredRunState.RUNNING)
            living.wait_until_read(PIPELINES, number)
        living.wait_until_read(ARCHIVES, rounds[-1])


@dataclass(frozen=True)
class LivingHome:
    """A home whose host runs."""

    home: GoldenHome
    store: ControlStore
    host: subprocess.Popen[bytes]

    def request(self, streams: Iterable[str], state: DesiredRunState) -> None:
        """Request a state of streams."""
        for stream in streams:
            self.store.set_desired_state(stream, state, time.time_ns() // 1_000_000)

    def bring_pipelines_to(self, state: DesiredRunState) -> None:
        """Request a state of all pipelines, and wait until they have it."""
        self.request(PIPELINES, state)
        for stream in PIPELINES:
            self._wait(
                stream, lambda stream=stream: self._read_state(stream) == state.as_state, f"be {state}"
            )

    def send_records(self, number: int) -> None:
        """Send the records of a round through a source with a ledger, and a malformed record past it."""
        for topic in TOPICS:
            words = ("--option", f"until={number}", "--topic", topic, "--producer", f"feed-{topic}")
            self.home.penstock("ingest", "round_files:RoundFiles", *words)
            producer = Producer(self.home.client)
            producer.produce(topic, MALFORMED, partition=number % PARTITIONS)
            assert producer.flush(PATIENCE_S) == 0

    def wait_until_read(self, streams: Mapping[str, Iterable[str]], until: int) -> None:
        """Wait until streams have read all rounds up to one."""
        for stream, topics in streams.items():
            expected = sum(self._count_sent(topic, until) for topic in topics)
            self._wait(
                stream,
                lambda stream=stream, expected=expected: self._count_read(stream) == expected,
                f"read {expected} records",
            )

    def _count_sent(self, topic: str, until: int) -> int:
        files = [self.home.root / "records" / topic / f"{number}.jsonl" for number in range(1, until + 1)]
        return sum(file.read_bytes().count(b"\n") + 1 for file in files)  # and a malformed one for each round

    def _count_read(self, stream: str) -> int:
        batches = read_batch_history(self.store, stream)
        return sum(account.read for batch in batches for account in batch.accounts)

    def _read_state(self, stream: str) -> StreamState | None:
        health = self.store.read_health(stream)
        return None if health is None else health.state

    def _wait(self, stream: str, condition: Callable[[], bool], description: str) -> None:
        wait_until(lambda: self._is_over(stream) or condition(), PATIENCE_S, f"{stream} to {description}")
        assert not self._is_over(stream), f"{stream} failed:\n{self.home.read_host_log()}"

    def _is_over(self, stream: str) -> bool:
        failures = (StreamState.RETRYING, StreamState.FAILED)
        return self.host.poll() is not None or self._read_state(stream) in failures


@contextmanager
def _open_store(home: GoldenHome) -> Iterator[ControlStore]:
    store = open_control_store(home.control_url)
    try:
        yield store
    finally:
        store.close()
