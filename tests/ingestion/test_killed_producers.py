"""Killed producers and brokers: each acknowledged record is delivered once, in order."""

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
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.ledger import DeliveryLedger, read_addresses, read_ledger_state
from penstock.ingestion.ledger.reader import list_segments
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka
FEED_SCRIPT = Path(__file__).with_name("feed_process.py")
KILL_ROUNDS = int(os.environ.get("KILL_ROUNDS", "12"))


def create_topic(broker: LocalBroker, name: str) -> None:
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
    """Check that ledger and topic agree: each sequence once, in order within its key."""
    records_by_offset = {(record.partition, record.offset): record for record in records}
    addresses = list(read_addresses(ledger))
    assert [address.sequence for address in addresses] == list(range(expected))
    assert len(records) == expected
    for address in addresses:
        assert (
            json.loads(records_by_offset[address.partition, address.offset].value)["id"]
            == f"7-{address.sequence}"
        )
    sequences = defaultdict(list)
    for record in records:
        sequences[record.key].append(int(json.loads(record.value)["id"].split("-")[1]))
    assert all(numbers == sorted(numbers) for numbers in sequences.values())


@pytest.mark.timeout(900)
def test_a_producer_killed_at_random_times_delivers_each_record_once(broker: LocalBroker, tmp_path: Path):
    create_topic(broker, "killed")
    ledger, rng = tmp_path / "feed", random.Random(20_261_118)
    sent = -1
    for _ in range(KILL_ROUNDS):
        process = start_feed(broker, ledger, "killed", until=10_000_000)
        if rng.random() < 0.25:
            wait_until_recovering(ledger, process)
        else:
            wait_until_sending(ledger, process, sent)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(rng.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        last = read_ledger_state(ledger).last_intent
        sent = -1 if last is None else last.first_sequence
    total = read_ledger_state(ledger).acknowledged_until + 20_000
    process = start_feed(broker, ledger, "killed", until=total)
    assert process.communicate(timeout=60)[0].split() == [str(total), "True"]
    check_delivery(read_topic(broker.bootstrap, "killed"), ledger, total)


def test_a_paced_file_resumes_after_each_kill(broker: LocalBroker, tmp_path: Path):
    create_topic(broker, "paced")
    ledger, file, number = tmp_path / "feed", tmp_path / "readings", 12_000
    reading = '{"id":"7-%d","device":"d%d","site":"s","at":1700000000000,"temperature":21.5}\n'
    file.write_text("".join(reading % (n, n % 5) for n in range(number)))
    for sequence in (1_000, 5_500):
        process = start_feed(broker, ledger, "paced", number, 4_000, file)
        wait_until_reached(ledger, process, sequence)
        process.kill()
        process.communicate()
    process = start_feed(broker, ledger, "paced", number, 4_000, file)
    assert process.communicate(timeout=60)[0].split() == [str(number), "True"]
    check_delivery(read_topic(broker.bootstrap, "paced"), ledger, number)


def wait_until_recovering(ledger: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a new producer writes to its ledger, while it may still recover."""
    before = count_ledger_bytes(ledger)
    wait_while_running(process, lambda: count_ledger_bytes(ledger) > before)


def count_ledger_bytes(ledger: Path) -> int:
    return sum(path.stat().st_size for path in list_segments(ledger))


def wait_until_sending(ledger: Path, process: subprocess.Popen[str], sent: int) -> None:
    """Wait until records after `sent` are in flight."""

    def has_new_intent() -> bool:
        intents = read_ledger_state(ledger).pending_intents
        return bool(intents) and intents[-1].first_sequence > sent

    wait_while_running(process, has_new_intent)


def wait_until_reached(ledger: Path, process: subprocess.Popen[str], sequence: int) -> None:
    wait_while_running(process, lambda: read_ledger_state(ledger).acknowledged_until >= sequence)


def wait_while_running(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    def is_met() -> bool:
        assert process.poll() is None, "the feed ended by itself"
        return condition()

    wait_until(is_met, PATIENCE_S, "the feed")


def test_a_broker_killed_under_load_loses_no_record(own_broker: LocalBroker, tmp_path: Path):
    create_topic(own_broker, "load")
    ledger = tmp_path / "feed"
    process = start_feed(own_broker, ledger, "load", until=24_000, rate=5_000)
    for sequence in (4_000, 12_000):
        wait_until_reached(ledger, process, sequence)
        own_broker.kill()
        own_broker.start()
    assert process.communicate(timeout=90)[0].split() == ["24000", "True"]
    check_delivery(read_topic(own_broker.bootstrap, "load"), ledger, 24_000)


def test_a_producer_stopped_without_its_broker_ends_and_resumes(own_broker: LocalBroker, tmp_path: Path):
    create_topic(own_broker, "away")
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


def test_a_producer_stopped_in_recovery_without_its_broker_ends_and_resumes(
    own_broker: LocalBroker, tmp_path: Path
):
    create_topic(own_broker, "doubts")
    ledger = tmp_path / "feed"
    process = start_feed(own_broker, ledger, "doubts", until=10_000_000)
    wait_until_sending(ledger, process, -1)
    process.kill()
    process.communicate()
    own_broker.kill()
    if not read_ledger_state(ledger).pending_intents:
        record_unsent_intent(ledger)
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


def record_unsent_intent(ledger: Path) -> None:
    """Record an intent without sending its records, as a producer that was killed a moment later."""
    delivery_ledger = DeliveryLedger(ledger, lambda: time.time_ns() // 1_000_000)
    last = delivery_ledger.state.last_intent
    assert last is not None
    position = {**last.position, "next": delivery_ledger.state.acknowledged_until, "count": 500}
    delivery_ledger.record_intent(delivery_ledger.state.acknowledged_until, 500, position)
    delivery_ledger.close(clean=False)


def has_ledger_lock(process: subprocess.Popen[str], ledger: Path) -> bool:
    """Whether a producer has opened its ledger; from then on SIGTERM stops it cleanly."""
    lock = str(ledger / "lock")
    return any(file.path == lock for file in psutil.Process(process.pid).open_files())
