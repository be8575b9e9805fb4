"""A producer has a ledger for each topic of a name.

A topic that was created again, or that is in another cluster, is another topic.
"""

from pathlib import Path

import pytest

from penstock.core.kafka_topics import TopicIds
from penstock.ingestion.ledger import DeliveryLedger, read_ledger_state

TARGETS = [("sensors", 0), ("sensors.dead-letters", 0)]


def open_ledger(folder: Path) -> DeliveryLedger:
    return DeliveryLedger(folder / "feed", lambda: 0)


def deliver(ledger: DeliveryLedger, topic_id: str, count: int) -> None:
    first = ledger.state.acknowledged_until
    ledger.start_session(TARGETS, [first - 1, -1], "s", topic_ids=TopicIds("cluster", {"sensors": topic_id}))
    ledger.record_intent(first, count, None)
    ledger.record_acknowledgements([(first, [0] * count, {0: [(first, count)]})])


def test_each_topic_has_a_ledger_that_is_taken_up_again(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    assert not ledger.select_topic("sensors", "A")
    deliver(ledger, "A", 5)
    assert ledger.select_topic("sensors", "B")
    assert ledger.state.acknowledged_until == 0
    deliver(ledger, "B", 2)
    assert ledger.select_topic("sensors", "A")
    assert ledger.state.acknowledged_until == 5
    deliver(ledger, "A", 1)
    ledger.close(clean=True)
    acknowledged = {path.name: read_ledger_state(path).acknowledged_until for path in tmp_path.iterdir()}
    assert acknowledged == {"feed": 6, "feed~B": 2}


def test_a_kill_between_the_renames_loses_no_ledger(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    deliver(ledger, "A", 5)
    ledger.select_topic("sensors", "B")
    deliver(ledger, "B", 2)
    ledger.close(clean=True)
    (tmp_path / "feed").rename(tmp_path / "feed~B")  # the first rename on the way back to A
    ledger = open_ledger(tmp_path)
    assert ledger.is_empty
    assert ledger.select_topic("sensors", "A")
    assert ledger.state.acknowledged_until == 5
    ledger.close(clean=True)


def test_a_ledger_of_version_0_1_0_belongs_to_the_topic_of_its_next_session(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    ledger.start_session(TARGETS, [-1, -1], "s")
    assert not ledger.select_topic("sensors", "A")
    deliver(ledger, "A", 3)
    assert ledger.select_topic("sensors", "B")
    ledger.close(clean=True)


def test_the_topic_survives_a_new_segment(tmp_path: Path) -> None:
    ledger = DeliveryLedger(tmp_path / "feed", lambda: 0, max_segment_bytes=100)
    for _ in range(10):
        deliver(ledger, "A", 5)
    ledger.close(clean=True)
    assert len(list((tmp_path / "feed").glob("*.ledger"))) > 1
    state = read_ledger_state(tmp_path / "feed")
    assert (state.topic_ids, state.cluster_id) == ({"sensors": "A"}, "cluster")


def test_another_process_cannot_take_a_ledger_that_was_switched(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    deliver(ledger, "A", 5)
    ledger.select_topic("sensors", "B")
    with pytest.raises(Exception, match="Another process writes the ledger"):
        open_ledger(tmp_path)
    ledger.close(clean=True)


def test_an_id_with_characters_of_paths_names_a_folder(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    deliver(ledger, "a/b+c", 1)
    assert ledger.select_topic("sensors", "d/e+f")
    deliver(ledger, "d/e+f", 2)
    assert ledger.select_topic("sensors", "a/b+c")
    assert ledger.state.acknowledged_until == 1
    ledger.close(clean=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["feed", "feed~d_e-f"]
