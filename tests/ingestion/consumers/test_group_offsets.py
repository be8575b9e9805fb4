"""Offsets that streams commit for a consumer group."""

import threading
from pathlib import Path

import pytest
from tests.ingestion.sensor_feeds import feed_topic
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.consumers import GroupOffsetCommitter, PlainConsumer
from penstock.ingestion.errors import ConsumerGroupError

pytestmark = pytest.mark.kafka


def test_the_newest_of_many_reported_offsets_is_committed(broker: LocalBroker, tmp_path: Path):
    feed_topic(broker, "lagging", tmp_path / "feed", 100)
    groups = GroupOffsetCommitter(broker.bootstrap)
    for offset in range(50):
        groups.report("quick", {("lagging", offset % 2): offset})
    assert groups.wait_until_committed(60)
    assert groups.read_offsets("quick") == {("lagging", 0): 48, ("lagging", 1): 49}


def test_a_killed_broker_delays_commits_without_failing(own_broker: LocalBroker, tmp_path: Path):
    feed_topic(own_broker, "cut-off", tmp_path / "feed", 10)
    groups = GroupOffsetCommitter(own_broker.bootstrap, timeout_s=2.0)
    groups.report("quick", {("cut-off", 0): 1})
    assert groups.wait_until_committed(60)
    own_broker.kill()
    for offset in range(2, 5):
        groups.report("quick", {("cut-off", 0): offset})
        groups.wait_until_committed(1)
    own_broker.start()

    def is_committed() -> bool:
        groups.report("quick", {("cut-off", 0): 7})
        return groups.wait_until_committed(10) and groups.read_offsets("quick") == {("cut-off", 0): 7}

    wait_until(is_committed, PATIENCE_S, "the offset to be committed again")
    groups.close(10)


def test_a_commit_for_a_group_with_members_is_refused(broker: LocalBroker, tmp_path: Path):
    feed_topic(broker, "taken-group", tmp_path / "feed", 10)
    refusals: list[ConsumerGroupError] = []
    groups = GroupOffsetCommitter(broker.bootstrap, on_refusal=refusals.append)
    stop = threading.Event()

    def report_from_inside(_records: object) -> None:
        groups.report("inside", {("taken-group", 0): 1})
        assert groups.wait_until_committed(60)
        stop.set()

    PlainConsumer(broker.bootstrap, "taken-group", "inside", report_from_inside).run(stop)
    assert "no consumer uses this group" in str(refusals[0])
