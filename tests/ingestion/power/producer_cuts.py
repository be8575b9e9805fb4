"""Cuts the power of a producer at any operation of its delivery ledger, and starts it again.

The broker is another machine, and keeps what arrived. After the next start, each record of the source must be in
the topic once, and the ledger must name its address.
"""

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.ingestion.power.broker_model import BrokerModel
from tests.pipelines.engine.power.crash_states import Crash
from tests.pipelines.engine.power.power_cuts import RecordedRun, scratch_folder
from tests.pipelines.engine.power.recorded_disk import RecordedDisk

from penstock.core import file_sync
from penstock.core.errors import PenstockError
from penstock.ingestion.errors import InvalidRecordError
from penstock.ingestion.ledger import DeliveryLedger, read_addresses
from penstock.ingestion.producer import InFlightWindow, LedgeredProducer, SourceBatch

TOPICS = {"t": 2, "t.dead-letters": 1}
RECORD_COUNT = 80
BATCH_RECORDS = 4
SESSIONS = 4
SEGMENT_BYTES = 900
START_MS = 1_700_000_000_123
WINDOW = InFlightWindow(max_records=6 * BATCH_RECORDS, max_chunk_records=BATCH_RECORDS)
VALUES = [f"record {number}".encode() for number in range(RECORD_COUNT)]


@dataclass(frozen=True)
class ProducerRun(RecordedRun):
    """A producer whose ledger was recorded, with some kills, and what arrived at its broker."""

    broker: BrokerModel
    seed: str

    def find_fault(self, crash: Crash) -> str:
        """Start again after a cut, and send the rest; return what is wrong, or nothing."""
        state_number = next(n for n, state in enumerate(self.disk.states) if state is crash.state)
        random_source = random.Random(f"{self.seed} {state_number}")
        broker = self.broker.copy_until(state_number + 1, random_source)
        with scratch_folder() as folder:
            crash.write(folder)
            try:
                run_session(folder / "feed", broker, batches=RECORD_COUNT)
                return find_wrong_delivery(folder / "feed", broker)
            except PenstockError as refusal:
                return f"refused: {refusal}"
            except Exception as error:  # noqa: BLE001  every error is a finding
                return f"{type(error).__name__}: {error}"


@contextmanager
def record_producer(random_source: random.Random) -> Iterator[ProducerRun]:
    """Run a producer on a recorded disk. It is killed between its sessions, with records in flight."""
    seed = str(random_source.random())
    with scratch_folder() as folder:
        disk = RecordedDisk(folder)
        broker = BrokerModel(TOPICS, random.Random(seed), lambda: len(disk.states))
        file_sync.forget_reachable_folders()
        with disk.recording():
            for _ in range(SESSIONS):
                run_session(folder / "feed", broker, batches=RECORD_COUNT // BATCH_RECORDS // SESSIONS)
            run_session(folder / "feed", broker, batches=RECORD_COUNT)
        assert not find_wrong_delivery(folder / "feed", broker)
        yield ProducerRun(disk, broker, seed)


def run_session(folder: Path, broker: BrokerModel, batches: int) -> None:
    """Send so many batches; then end cleanly if the source is at its end, else as by a kill."""
    ledger = DeliveryLedger(folder, lambda: START_MS, SEGMENT_BYTES)
    try:
        with broker.replacing_kafka():
            producer = LedgeredProducer("model", "t", ledger, source="values", in_flight_window=WINDOW)
            first = producer.resume(replay)
            for start in range(first, min(RECORD_COUNT, first + batches * BATCH_RECORDS), BATCH_RECORDS):
                producer.send(read_batch(start, BATCH_RECORDS))
            if producer.next_sequence >= RECORD_COUNT:
                assert producer.flush()
                producer.close()
    finally:
        release_lock(ledger)


def release_lock(ledger: DeliveryLedger) -> None:
    """Close the files of a ledger without writing to it, as the end of its process does."""
    for descriptor in (ledger._lock_handle, ledger._journal._file):
        with suppress(OSError):
            if descriptor is not None:
                os.close(descriptor)


def read_batch(start: int, count: int, skip_records: int = 0) -> SourceBatch:
    """Return records of the source. Each seventh one is invalid, and each third has no key."""
    numbers = range(start + skip_records, min(RECORD_COUNT, start + skip_records + count))
    return SourceBatch(
        [VALUES[number] for number in numbers],
        start,
        [None if number % 3 == 0 else b"k%d" % (number % 5) for number in numbers],
        {
            index: InvalidRecordError("malformed", "a test")
            for index, number in enumerate(numbers)
            if number % 7 == 3
        },
        skip_records,
    )


def replay(position: int, skip_records: int, count: int) -> Sequence[SourceBatch]:
    return [read_batch(position, count, skip_records)]


def find_wrong_delivery(folder: Path, broker: BrokerModel) -> str:
    """Return what is wrong in the topic or the ledger; nothing if each record is there once, with its address."""
    delivered = [record.value() for records in broker.partitions.values() for record in records]
    if repeated := sorted({value for value in delivered if delivered.count(value) > 1}):
        return f"delivered twice: {repeated[0]!r} and {len(repeated) - 1} others"
    if missing := sorted({*VALUES} - {*delivered}):
        return f"lost: {missing[0]!r} and {len(missing) - 1} others"
    addresses = {address.sequence: address for address in read_addresses(folder)}
    for sequence, value in enumerate(VALUES):
        if (address := addresses.get(sequence)) is None:
            return f"no address of sequence {sequence}"
        if broker.partitions[address.topic, address.partition][address.offset].value() != value:
            return f"wrong address of sequence {sequence}: {address}"
    return ""
