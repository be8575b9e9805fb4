"""A producer, or its broker, dies at any moment: what is acknowledged is there, once, in order."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.ingestion.topic_reading import TopicRecord, read_topic

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.ledger import DeliveryLedger, read_addresses, read_ledger_state
from penstock.ingestion.ledger.reader import list_segments
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka
FEED_SCRIPT = Path(__file__).with_name("feeding.py")
KILL_ROUNDS = int(os.environ.get("KILL_ROUNDS", "12"))


def make_topic(broker: LocalBroker, name: str) -> None:
    ensure_topics(broker.bootstrap, [dataclasses.replace(load_contract("sensors"), topic=name)])


def start_feed(
    broker: LocalBroker, ledger: Path, topic: str, until: int, rate: int = 0, file: Path | None = None
) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        str(FEED_SCRIPT),
        broker.bootstrap,
        str(ledger),
        topic,
        str(until),
        str(rate),
        "7",
    ]
    return subprocess.Popen([*command, *([str(file)] if file else [])], stdout=subprocess.PIPE, text=True)


def check_delivery(records: list[TopicRecord], ledger: Path, expected: int) -> None:
    """The ledger's addresses and the topic's records are the same, each sequence once, in order per key."""
    at = {(record.partition, record.offset): record for record in records}
    addresses = list(read_addresses(ledger))
    assert [address.sequence for address in addresses] == list(range(expected))
    assert len(records) == expected
    for address in addresses:
        assert json.loads(at[address.partition, address.offset].value)["id"] == f"7-{address.sequence}"
    sequences = defaultdict(list)
    for record in records:
        sequences[record.key].append(int(json.loads(record.value)["id"].split("-")[1]))
    assert all(found == sorted(found) for found in sequences.values())


@pytest.mark.timeout(900)
def test_a_producer_killed_at_random_moments_delivers_each_record_once(broker: LocalBroker, tmp_path: Path):
    make_topic(broker, "killed")
    ledger, chance = tmp_path / "feed", random.Random(20_261_118)
    sent = -1
    for _ in range(KILL_ROUNDS):
        process = start_feed(broker, ledger, "killed", until=10_000_000)
        if chance.random() < 0.25:
            wait_until_recovering(ledger, process)
        else:
            wait_until_sending(ledger, process, sent)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(chance.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        last = read_ledger_state(ledger).last_intent
        sent = -1 if last is None else last.first_sequence
    total = read_ledger_state(ledger).acknowledged_until + 20_000
    process = start_feed(broker, ledger, "killed", until=total)
    assert process.communicate(timeout=60)[0].split() == [str(total), "True"]
    check_delivery(read_topic(broker.bootstrap, "killed"), ledger, total)


def test_a_file_sent_at_a_rate_goes_on_after_each_kill(broker: LocalBroker, tmp_path: Path):
    make_topic(broker, "paced")
    ledger, file, number = tmp_path / "feed", tmp_path / "readings", 12_000
    reading = '{"id":"7-%d","device":"d%d","site":"s","at":1700000000000,"temperature":21.5}\n'
    file.write_text("".join(reading % (n, n % 5) for n in range(number)))
    for moment in (1_000, 5_500):
        process = start_feed(broker, ledger, "paced", number, 4_000, file)
        wait_until_reached(ledger, process, moment)
        process.kill()
        process.communicate()
    process = start_feed(broker, ledger, "paced", number, 4_000, file)
    assert process.communicate(timeout=60)[0].split() == [str(number), "True"]
    check_delivery(read_topic(broker.bootstrap, "paced"), ledger, number)


def wait_until_recovering(ledger: Path, process: subprocess.Popen[str]) -> None:
    """Wait for the first word of a new producer, which may still be busy with what the one before it left."""
    before = count_ledger_bytes(ledger)
    wait_while_running(process, lambda: count_ledger_bytes(ledger) > before)


def count_ledger_bytes(ledger: Path) -> int:
    return sum(path.stat().st_size for path in list_segments(ledger))


def wait_until_sending(ledger: Path, process: subprocess.Popen[str], sent: int) -> None:
    """Wait until records are in flight that no producer before has sent."""

    def sends() -> bool:
        intents = read_ledger_state(ledger).pending_intents
        return bool(intents) and intents[-1].first_sequence > sent

    wait_while_running(process, sends)


def wait_until_reached(ledger: Path, process: subprocess.Popen[str], sequence: int) -> None:
    wait_while_running(process, lambda: read_ledger_state(ledger).acknowledged_until >= sequence)


def wait_while_running(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    def so() -> bool:
        assert process.poll() is None, "the feed ended by itself"
        return condition()

    wait_until(so, 60, "the feed")


def test_a_broker_killed_and_restarted_under_load_costs_no_record(own_broker: LocalBroker, tmp_path: Path):
    make_topic(own_broker, "load")
    ledger = tmp_path / "feed"
    process = start_feed(own_broker, ledger, "load", until=24_000, rate=5_000)
    for moment in (4_000, 12_000):
        wait_until_reached(ledger, process, moment)
        own_broker.kill()
        own_broker.start()
    assert process.communicate(timeout=90)[0].split() == ["24000", "True"]
    check_delivery(read_topic(own_broker.bootstrap, "load"), ledger, 24_000)


def test_a_producer_stopped_while_the_broker_is_away_ends_and_is_resumed(
    own_broker: LocalBroker, tmp_path: Path
):
    make_topic(own_broker, "away")
    ledger = tmp_path / "feed"
    process = start_feed(own_broker, ledger, "away", until=20_000, rate=4_000)
    wait_until_reached(ledger, process, 2_000)
    own_broker.kill()
    process.terminate()
    assert process.communicate(timeout=60)[0].split()[1] in ("True", "False")
    own_broker.start()
    process = start_feed(own_broker, ledger, "away", until=20_000)
    assert process.communicate(timeout=60)[0].split() == ["20000", "True"]
    check_delivery(read_topic(own_broker.bootstrap, "away"), ledger, 20_000)


def test_a_producer_stopped_while_it_settles_and_the_broker_is_away_ends_and_is_resumed(
    own_broker: LocalBroker, tmp_path: Path
):
    make_topic(own_broker, "doubts")
    ledger = tmp_path / "feed"
    process = start_feed(own_broker, ledger, "doubts", until=10_000_000)
    wait_until_sending(ledger, process, -1)
    process.kill()
    process.communicate()
    own_broker.kill()
    if not read_ledger_state(ledger).pending_intents:
        leave_one_in_doubt(ledger)
    process = start_feed(own_broker, ledger, "doubts", until=10_000_000)
    wait_while_running(process, lambda: has_ledger_lock(process, ledger))
    process.terminate()
    reached = read_ledger_state(ledger).acknowledged_until
    assert process.communicate(timeout=60)[0].split() == [str(reached), "False"]
    assert process.returncode == 0
    own_broker.start()
    total = reached + 30_000
    process = start_feed(own_broker, ledger, "doubts", until=total)
    assert process.communicate(timeout=60)[0].split() == [str(total), "True"]
    check_delivery(read_topic(own_broker.bootstrap, "doubts"), ledger, total)


def leave_one_in_doubt(ledger: Path) -> None:
    """Write down what a producer would have done next, had it been killed a moment later."""
    opened = DeliveryLedger(ledger, lambda: time.time_ns() // 1_000_000)
    last = opened.state.last_intent
    assert last is not None
    position = {**last.position, "next": opened.state.acknowledged_until, "count": 500}
    opened.record_intent(opened.state.acknowledged_until, 500, position)
    opened.close(clean=False)


def has_ledger_lock(process: subprocess.Popen[str], ledger: Path) -> bool:
    """Say whether a producer has come to its ledger: from then on it is stopped in order."""
    lock = str(ledger / "lock")
    return any(file.path == lock for file in psutil.Process(process.pid).open_files())
