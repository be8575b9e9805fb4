"""Consumers that join and leave a group."""

import threading
from pathlib import Path

import pytest
from tests.ingestion.sensor_feeds import feed_topic
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.consumers import PlainConsumer

pytestmark = pytest.mark.kafka


def test_partitions_are_reassigned_and_every_record_is_handled(broker: LocalBroker, tmp_path: Path):
    feed_topic(broker, "grouped", tmp_path / "feed", 2_000)
    handled: list[tuple[int, int]] = []
    assignments: dict[str, tuple[int, ...]] = {}
    stops = {name: threading.Event() for name in ("one", "two")}

    def start_member(name: str) -> threading.Thread:
        consumer = PlainConsumer(
            broker.bootstrap,
            "grouped",
            "members",
            lambda records: handled.extend((record.partition, record.offset) for record in records),
            on_assignment=lambda assignment: assignments.__setitem__(name, assignment.partitions),
            client_settings={"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500},
        )
        thread = threading.Thread(target=consumer.run, args=(stops[name],))
        thread.start()
        return thread

    first = start_member("one")
    wait_until(lambda: assignments.get("one") == (0, 1, 2), PATIENCE_S, "one member to have all partitions")
    second = start_member("two")
    wait_until(
        lambda: (
            assignments.get("two", ()) != () and sorted(assignments["one"] + assignments["two"]) == [0, 1, 2]
        ),
        PATIENCE_S,
        "both members to share the partitions",
    )
    stops["one"].set()
    first.join(30)
    wait_until(lambda: assignments["two"] == (0, 1, 2), PATIENCE_S, "the other member to have all partitions")
    wait_until(lambda: len(set(handled)) == 2_000, PATIENCE_S, "every record to be handled")
    stops["two"].set()
    second.join(30)


class SimulatedFailureError(Exception):
    pass


def test_a_failed_consumer_handles_the_records_since_its_last_commit_again(
    broker: LocalBroker, tmp_path: Path
):
    feed_topic(broker, "failing", tmp_path / "feed", 2_000)
    handled: list[tuple[int, int]] = []
    stop = threading.Event()

    def handle(records) -> None:
        is_second_run = bool(handled)
        handled.extend((record.partition, record.offset) for record in records)
        if not is_second_run:
            raise SimulatedFailureError
        if len(set(handled)) == 2_000:
            stop.set()

    with pytest.raises(SimulatedFailureError):
        PlainConsumer(broker.bootstrap, "failing", "failing", handle).run(threading.Event())
    handled_before_failure = set(handled)
    PlainConsumer(broker.bootstrap, "failing", "failing", handle).run(stop)
    assert len(set(handled)) == 2_000
    assert handled_before_failure <= {place for place in handled if handled.count(place) == 2}
