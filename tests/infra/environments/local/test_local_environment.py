"""The life cycle of the environment `local`: apply, changes in place, a killed broker, destroy.

The tests build on each other and run in this order.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.infra.environments.environment_copies import (
    PORT_COUNT,
    copy_environments,
    find_first_port,
    open_local_environment,
)
from tests.ingestion.topic_contracts import sensors_contract
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.ports import LOCALHOST, accepts_connections
from penstock.infra.terraform import PlanAction, TerraformPlan, TerraformWorkspace
from penstock.infra.terraform.errors import PlanFailedError
from penstock.ingestion.feed import Feed
from penstock.ingestion.feed import FeedLimits as FeedLimits
from penstock.ingestion.generators import SensorGenerator
from penstock.ingestion.sources import GeneratorSource
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.whole

TOPIC = "messages"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class LocalEnvironment:
    """An environment, and the messages that the tests have written to it."""

    open_workspace: Callable[..., TerraformWorkspace]
    run: Path
    first_port: int
    acknowledged: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        return ",".join(self.open_workspace().read_outputs()["kafka"].value["brokers"])

    def read_record(self, name: str) -> dict[str, Any]:
        return json.loads((self.run / f"{name}.json").read_text())  # type: ignore[no-any-return]

    def find_pids(self) -> dict[str, int]:
        paths = [*self.run.glob("kafka/broker-*.json"), *self.run.glob("spark/spark-*.json")]
        return {path.stem: json.loads(path.read_text())["pid"] for path in paths}

    def produce_count(self, messages: int, before_each: Callable[[int], None] = lambda _number: None) -> None:
        """Write messages that all replicas must acknowledge; record the outcome of each."""
        self.produce(range(messages), self.producer(), before_each)

    @contextmanager
    def produce_continuously(self) -> Iterator[None]:
        """Write about two hundred messages a second until the context ends."""
        stopped = Event()
        numbers = takewhile(lambda _: not stopped.wait(0.005), count())
        producer = self.producer()  # before the apply, while Terraform does not rewrite its outputs
        with ThreadPoolExecutor(1) as threads:
            outcome = threads.submit(self.produce, numbers, producer)
            try:
                yield
            finally:
                stopped.set()
            outcome.result()

    def producer(self) -> Producer:
        settings = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "log_level": 0}
        return Producer({**settings, "delivery.timeout.ms": 60_000})

    def produce(
        self,
        numbers: Iterable[int],
        producer: Producer,
        before_each: Callable[[int], None] = lambda _number: None,
    ) -> None:
        """Write a message for each number, after the existing ones."""

        def record_delivery(error: object, message: Message) -> None:
            if error is None:
                self.acknowledged[message.value()] = (message.partition(), message.offset())
            else:
                self.refused.append(f"{message.value()!r}: {error}")

        start = len(self.acknowledged)
        for number in numbers:
            before_each(number)
            producer.produce(TOPIC, str(start + number).encode(), callback=record_delivery)
            producer.poll(0)
        producer.flush(90)

    def consume_all(self) -> dict[bytes, tuple[int, int]]:
        """Return partition and offset of each message of the topic, by its value."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "reader", "log_level": 0})
        ends = {
            p: consumer.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=PATIENCE_S)[1]
            for p in range(4)
        }
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in ends])
        positions: dict[bytes, tuple[int, int]] = {}
        while len(positions) < sum(ends.values()):
            message = consumer.poll(30)
            assert message is not None, "the topic cannot be read to its end"
            assert message.error() is None, message.error()
            positions[message.value()] = (message.partition(), message.offset())
        consumer.close()
        return positions

    def find_leader(self, partition: int) -> int:
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return client.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions[partition].leader  # type: ignore[no-any-return]


def is_running(pid: int) -> bool:
    """A zombie does not count as running."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def actions_by_address(plan: TerraformPlan) -> dict[str, PlanAction]:
    return {change.address: change.action for change in plan.changes}


@pytest.fixture(scope="module")
def local_environment(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[LocalEnvironment]:
    root = tmp_path_factory.mktemp("checkout")
    copy_environments(root)
    first, jars = find_first_port(), pytestconfig.rootpath / ".penstock" / "jars"

    def open_workspace(**variables: object) -> TerraformWorkspace:
        return open_local_environment(root, jars, first, **variables)

    local_environment = LocalEnvironment(
        open_workspace, root / ".penstock" / "environments" / "local" / "run", first
    )
    yield local_environment
    workspace = open_workspace()
    if workspace.list_resources():
        workspace.apply(workspace.plan(destroy=True))


def test_apply_from_nothing_starts_brokers_and_spark(local_environment: LocalEnvironment) -> None:
    workspace = local_environment.open_workspace()
    workspace.apply(workspace.plan())
    assert set(local_environment.find_pids()) == {
        "broker-1",
        "broker-2",
        "broker-3",
        "spark-master",
        "spark-worker-1",
        "spark-worker-2",
    }


def test_a_plan_right_after_apply_shows_no_change(local_environment: LocalEnvironment) -> None:
    plan = local_environment.open_workspace().plan()
    assert plan.is_empty, actions_by_address(plan)


def test_a_topic_has_three_replicas(local_environment: LocalEnvironment) -> None:
    client = AdminClient({"bootstrap.servers": local_environment.bootstrap, "log_level": 0})
    client.create_topics([NewTopic(TOPIC, 4)])[TOPIC].result(PATIENCE_S)

    def replica_counts() -> list[int]:
        partitions = client.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions.values()
        return [len(partition.replicas) for partition in partitions]

    # Other brokers than the one that created the topic may learn of it later.
    wait_until(lambda: len(replica_counts()) == 4, PATIENCE_S, "the topic to be known")
    assert replica_counts() == [3, 3, 3, 3]
    local_environment.produce_count(1000)
    assert len(local_environment.acknowledged) == 1000


def test_a_killed_leader_loses_no_acknowledged_message(
    local_environment: LocalEnvironment, tmp_path: Path
) -> None:
    """Producers continue, and a feed that starts meanwhile waits for the new leader."""
    killed = local_environment.find_leader(0)
    contract = sensors_contract("started_during_failover")
    ensure_topics(local_environment.bootstrap, [contract], "production")
    feed = Feed(
        GeneratorSource(SensorGenerator(1), contract, now_ms),
        contract,
        local_environment.bootstrap,
        tmp_path / "feed",
        now_ms,
    )

    def kill(number: int) -> None:
        if number == 500:
            psutil.Process(local_environment.read_record(f"kafka/broker-{killed}")["pid"]).kill()
            assert feed.run(Event(), limits=FeedLimits(count=1_000, finish_ms=60_000)).complete

    local_environment.produce_count(1000, before_each=kill)
    positions = local_environment.consume_all()
    assert len(local_environment.acknowledged) > 1000
    assert {
        value: positions.get(value) for value in local_environment.acknowledged
    } == local_environment.acknowledged
    assert local_environment.find_leader(0) != killed


def test_a_killed_broker_is_planned_as_drift_and_restarted_by_apply(
    local_environment: LocalEnvironment,
) -> None:
    workspace = local_environment.open_workspace()
    plan = workspace.plan()
    down = [name for name, pid in local_environment.find_pids().items() if not is_running(pid)]
    assert len(down) == 1
    node = down[0].removeprefix("broker-")
    assert actions_by_address(plan) == {
        f'module.kafka.module.broker["{node}"].terraform_data.running': PlanAction.REPLACE
    }
    values = {str(value.after).partition(" at ")[0] for change in plan.changes for value in change.values}
    assert "found down" in values
    others = {name: pid for name, pid in local_environment.find_pids().items() if name not in down}
    workspace.apply(plan)
    assert workspace.plan().is_empty
    assert {name: pid for name, pid in local_environment.find_pids().items() if name not in down} == others
    client = AdminClient({"bootstrap.servers": local_environment.bootstrap, "log_level": 0})
    partitions = client.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions.values()
    assert {len(partition.isrs) for partition in partitions} == {3}


def test_scaling_up_and_a_larger_heap_are_applied_in_place_during_writes(
    local_environment: LocalEnvironment,
) -> None:
    before = local_environment.find_pids()
    larger = local_environment.open_workspace(broker_heap_mb=448, brokers=4, workers=3)
    plan = larger.plan()
    assert not plan.count_actions(PlanAction.DELETE)
    assert 'module.kafka.module.broker["1"].terraform_data.place' not in actions_by_address(plan)
    acknowledged, refused = len(local_environment.acknowledged), len(local_environment.refused)
    with local_environment.produce_continuously():
        larger.apply(plan)
    assert len(local_environment.acknowledged) - acknowledged > 500, (
        "no messages were written while brokers changed"
    )
    assert local_environment.refused[refused:] == []
    assert larger.plan().is_empty
    after = local_environment.find_pids()
    assert after.keys() - before.keys() == {"broker-4", "spark-worker-3"}
    assert {name for name in before if before[name] == after[name]} == {
        "spark-master",
        "spark-worker-1",
        "spark-worker-2",
    }
    for node in (1, 2, 3, 4):
        assert "-Xmx448m" in psutil.Process(after[f"broker-{node}"]).cmdline()
    client = AdminClient({"bootstrap.servers": local_environment.bootstrap, "log_level": 0})
    assert set(client.list_topics(timeout=PATIENCE_S).brokers) == {1, 2, 3, 4}
    positions = local_environment.consume_all()
    assert {
        value: positions.get(value) for value in local_environment.acknowledged
    } == local_environment.acknowledged
    assert refused or positions == local_environment.acknowledged


def test_a_broker_with_partitions_is_not_removed(local_environment: LocalEnvironment) -> None:
    client = AdminClient({"bootstrap.servers": local_environment.bootstrap, "log_level": 0})
    client.create_topics([NewTopic("on-four", 1, replica_assignment=[[4, 1, 2]])])["on-four"].result(
        PATIENCE_S
    )
    with pytest.raises(PlanFailedError, match="still holds partitions"):
        local_environment.open_workspace(broker_heap_mb=448, brokers=3, workers=3).plan()


def test_workers_are_removed_and_changed_in_place(local_environment: LocalEnvironment) -> None:
    before = local_environment.find_pids()
    fewer = local_environment.open_workspace(broker_heap_mb=448, brokers=4, workers=1, worker_memory_mb=768)
    fewer.apply(fewer.plan())
    assert fewer.plan().is_empty
    after = local_environment.find_pids()
    assert before.keys() - after.keys() == {"spark-worker-2", "spark-worker-3"}
    assert {name for name in after if after[name] != before[name]} == {"spark-worker-1"}
    assert "768m" in psutil.Process(after["spark-worker-1"]).cmdline()


def test_destroy_removes_every_process_port_and_file(local_environment: LocalEnvironment) -> None:
    workspace = local_environment.open_workspace(
        broker_heap_mb=448, brokers=4, workers=1, worker_memory_mb=768
    )
    find_pids = local_environment.find_pids()
    workspace.apply(workspace.plan(destroy=True))
    assert not [name for name, pid in find_pids.items() if is_running(pid)]
    processes = [process.info for process in psutil.process_iter(["cmdline"])]
    assert not [
        process
        for process in processes
        if any(str(local_environment.run) in word for word in process["cmdline"] or [])
    ]
    assert not [
        n for n in range(PORT_COUNT) if accepts_connections(LOCALHOST, local_environment.first_port + n, 0.05)
    ]
    assert not local_environment.run.exists()
    assert workspace.list_resources() == ()
