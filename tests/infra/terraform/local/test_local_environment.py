"""The environment `local`, really applied: brokers, Spark, changes in place, a killed broker, destroy.

The tests are one story and run in their order; each states what holds at its point.
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
from tests.infra.terraform.checkouts import PORTS, block_of_ports, copy_environments, local_environment
from tests.ingestion.topics_for_tests import sensors_contract

from penstock.core.waiting import wait_until
from penstock.infra.ports import LOCALHOST, accepts_connections
from penstock.infra.terraform import PlanAction, TerraformPlan, TerraformWorkspace
from penstock.infra.terraform.errors import PlanFailedError
from penstock.ingestion.feed import Feed
from penstock.ingestion.feed import FeedLimits as FeedLimits
from penstock.ingestion.generators import SensorGenerator
from penstock.ingestion.sources import GeneratorSource
from penstock.ingestion.topics import ensure_topics

pytestmark = [pytest.mark.whole, pytest.mark.timeout(400)]

TOPIC = "told"


def clock() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Story:
    """The environment and what has been written to it so far."""

    make: Callable[..., TerraformWorkspace]
    run: Path
    first_port: int
    acknowledged: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        return ",".join(self.make().read_outputs()["kafka"].value["brokers"])

    def record(self, name: str) -> dict[str, Any]:
        return json.loads((self.run / f"{name}.json").read_text())  # type: ignore[no-any-return]

    def pids(self) -> dict[str, int]:
        found = [*self.run.glob("kafka/broker-*.json"), *self.run.glob("spark/spark-*.json")]
        return {path.stem: json.loads(path.read_text())["pid"] for path in found}

    def write(self, messages: int, between: Callable[[int], None] = lambda _number: None) -> None:
        """Write messages that every copy must have; remember those that Kafka acknowledged."""
        self.write_each(range(messages), self.producer(), between)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write one message after the other, some two hundred a second, for as long as the context lasts."""
        over = Event()
        numbers = takewhile(lambda _: not over.wait(0.005), count())
        producer = (
            self.producer()
        )  # before anything is applied: Terraform writes its state, outputs and all, in place
        with ThreadPoolExecutor(1) as threads:
            written = threads.submit(self.write_each, numbers, producer)
            try:
                yield
            finally:
                over.set()
            written.result()

    def producer(self) -> Producer:
        settings = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "log_level": 0}
        return Producer({**settings, "delivery.timeout.ms": 60_000})

    def write_each(
        self,
        numbers: Iterable[int],
        producer: Producer,
        between: Callable[[int], None] = lambda _number: None,
    ) -> None:
        """Write a message for each number, on top of those that are there."""

        def told(error: object, message: Message) -> None:
            if error is None:
                self.acknowledged[message.value()] = (message.partition(), message.offset())
            else:
                self.refused.append(f"{message.value()!r}: {error}")

        begin = len(self.acknowledged)
        for number in numbers:
            between(number)
            producer.produce(TOPIC, str(begin + number).encode(), callback=told)
            producer.poll(0)
        producer.flush(90)

    def read(self) -> dict[bytes, tuple[int, int]]:
        """All that is in the topic, by its content."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "reader", "log_level": 0})
        ends = {p: consumer.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=30)[1] for p in range(4)}
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in ends])
        found: dict[bytes, tuple[int, int]] = {}
        while len(found) < sum(ends.values()):
            message = consumer.poll(30)
            assert message is not None, "the topic cannot be read to its end"
            assert message.error() is None, message.error()
            found[message.value()] = (message.partition(), message.offset())
        consumer.close()
        return found

    def leader(self, partition: int) -> int:
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return client.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions[partition].leader  # type: ignore[no-any-return]


def lives(pid: int) -> bool:
    """A dead process that its parent has not fetched yet does not live."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def changed(plan: TerraformPlan) -> dict[str, PlanAction]:
    return {change.address: change.action for change in plan.changes}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Story]:
    root = tmp_path_factory.mktemp("checkout")
    copy_environments(root)
    first, jars = block_of_ports(), pytestconfig.rootpath / ".penstock" / "jars"

    def make(**variables: object) -> TerraformWorkspace:
        return local_environment(root, jars, first, **variables)

    story = Story(make, root / ".penstock" / "environments" / "local" / "run", first)
    yield story
    workspace = make()
    if workspace.list_resources():
        workspace.apply(workspace.plan(destroy=True))


def test_apply_from_nothing_starts_brokers_and_spark(story: Story) -> None:
    workspace = story.make()
    workspace.apply(workspace.plan())
    assert set(story.pids()) == {
        "broker-1",
        "broker-2",
        "broker-3",
        "spark-master",
        "spark-worker-1",
        "spark-worker-2",
    }


def test_a_plan_right_after_apply_shows_no_change(story: Story) -> None:
    plan = story.make().plan()
    assert plan.is_empty, changed(plan)


def test_a_topic_has_three_copies_and_needs_two(story: Story) -> None:
    client = AdminClient({"bootstrap.servers": story.bootstrap, "log_level": 0})
    client.create_topics([NewTopic(TOPIC, 4)])[TOPIC].result(30)

    def copies() -> list[int]:
        partitions = client.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions.values()
        return [len(partition.replicas) for partition in partitions]

    # A broker that was not asked may hear of a new topic a moment later than the one that made it.
    wait_until(lambda: len(copies()) == 4, 30, "the topic to be known")
    assert copies() == [3, 3, 3, 3]
    story.write(1000)
    assert len(story.acknowledged) == 1000


def test_a_killed_leader_loses_nothing_that_was_acknowledged(story: Story, tmp_path: Path) -> None:
    """Whoever writes goes on, and a feed that begins at that moment waits until others lead."""
    killed = story.leader(0)
    contract = sensors_contract("begun")
    ensure_topics(story.bootstrap, [contract], "production")
    feed = Feed(
        GeneratorSource(SensorGenerator(1), contract, clock),
        contract,
        story.bootstrap,
        tmp_path / "feed",
        clock,
    )

    def kill(number: int) -> None:
        if number == 500:
            psutil.Process(story.record(f"kafka/broker-{killed}")["pid"]).kill()
            assert feed.run(Event(), limits=FeedLimits(count=1_000, finish_ms=60_000)).complete

    story.write(1000, between=kill)
    found = story.read()
    assert len(story.acknowledged) > 1000
    assert {value: found.get(value) for value in story.acknowledged} == story.acknowledged
    assert story.leader(0) != killed


def test_a_killed_broker_is_drift_that_plan_shows_and_apply_mends(story: Story) -> None:
    workspace = story.make()
    plan = workspace.plan()
    down = [name for name, pid in story.pids().items() if not lives(pid)]
    assert len(down) == 1
    node = down[0].removeprefix("broker-")
    assert changed(plan) == {
        f'module.kafka.module.broker["{node}"].terraform_data.running': PlanAction.REPLACE
    }
    told = {str(one.after).partition(" at ")[0] for change in plan.changes for one in change.values}
    assert "found down" in told
    others = {name: pid for name, pid in story.pids().items() if name not in down}
    workspace.apply(plan)
    assert workspace.plan().is_empty
    assert {name: pid for name, pid in story.pids().items() if name not in down} == others
    client = AdminClient({"bootstrap.servers": story.bootstrap, "log_level": 0})
    partitions = client.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions.values()
    assert {len(partition.isrs) for partition in partitions} == {3}


def test_growing_and_a_larger_heap_are_applied_in_place_while_others_write(story: Story) -> None:
    before = story.pids()
    larger = story.make(broker_heap_mb=448, brokers=4, workers=3)
    plan = larger.plan()
    assert not plan.count_actions(PlanAction.DELETE)
    assert 'module.kafka.module.broker["1"].terraform_data.place' not in changed(plan)
    written, refused = len(story.acknowledged), len(story.refused)
    with story.writing():
        larger.apply(plan)
    assert len(story.acknowledged) - written > 500, "nobody wrote while brokers were changed"
    assert story.refused[refused:] == []
    assert larger.plan().is_empty
    after = story.pids()
    assert after.keys() - before.keys() == {"broker-4", "spark-worker-3"}
    assert {name for name in before if before[name] == after[name]} == {
        "spark-master",
        "spark-worker-1",
        "spark-worker-2",
    }
    for node in (1, 2, 3, 4):
        assert "-Xmx448m" in psutil.Process(after[f"broker-{node}"]).cmdline()
    client = AdminClient({"bootstrap.servers": story.bootstrap, "log_level": 0})
    assert set(client.list_topics(timeout=30).brokers) == {1, 2, 3, 4}
    found = story.read()
    assert {value: found.get(value) for value in story.acknowledged} == story.acknowledged
    assert refused or found == story.acknowledged


def test_a_broker_that_holds_partitions_does_not_go(story: Story) -> None:
    client = AdminClient({"bootstrap.servers": story.bootstrap, "log_level": 0})
    client.create_topics([NewTopic("on-four", 1, replica_assignment=[[4, 1, 2]])])["on-four"].result(30)
    with pytest.raises(PlanFailedError, match="still holds partitions"):
        story.make(broker_heap_mb=448, brokers=3, workers=3).plan()


def test_workers_leave_and_change_in_place(story: Story) -> None:
    before = story.pids()
    fewer = story.make(broker_heap_mb=448, brokers=4, workers=1, worker_memory_mb=768)
    fewer.apply(fewer.plan())
    assert fewer.plan().is_empty
    after = story.pids()
    assert before.keys() - after.keys() == {"spark-worker-2", "spark-worker-3"}
    assert {name for name in after if after[name] != before[name]} == {"spark-worker-1"}
    assert "768m" in psutil.Process(after["spark-worker-1"]).cmdline()


def test_destroy_leaves_no_process_port_or_file(story: Story) -> None:
    workspace = story.make(broker_heap_mb=448, brokers=4, workers=1, worker_memory_mb=768)
    pids = story.pids()
    workspace.apply(workspace.plan(destroy=True))
    assert not [name for name, pid in pids.items() if lives(pid)]
    left = [process.info for process in psutil.process_iter(["cmdline"])]
    assert not [one for one in left if any(str(story.run) in word for word in one["cmdline"] or [])]
    assert not [n for n in range(PORTS) if accepts_connections(LOCALHOST, story.first_port + n, 0.05)]
    assert not story.run.exists()
    assert workspace.list_resources() == ()
