"""Writes readings into a topic at a rate: `python -m tests.benchmarks.load BOOTSTRAP TOPIC RATE RECORDS KEYS`.

The timestamp and event time of each record are its write time. With rate 0 it writes as fast as it can, and event
times advance by a millisecond every ten records.
"""

import argparse
import time

from confluent_kafka import Producer
from tests.benchmarks.rivals import PARTITION_COUNT, make_reading, now_ms

SLICE_SECONDS = 0.01


def write_live(producer: Producer, topic: str, rate: float, records: int, keys: int) -> None:
    """Write records at this rate per second, in small slices."""
    started, sent = time.monotonic(), 0
    while sent < records:
        due = min(int((time.monotonic() - started) * rate), records)
        now = now_ms()
        for number in range(sent, due):
            producer.produce(
                topic, make_reading(number, keys, now), partition=number % PARTITION_COUNT, timestamp=now
            )
        sent = due
        producer.poll(0)
        time.sleep(SLICE_SECONDS)


def write_stored(producer: Producer, topic: str, records: int, keys: int) -> None:
    """Write all records as fast as the broker accepts them."""
    for number in range(records):
        while True:
            try:
                at = 1_700_000_000_000 + number // 10
                producer.produce(topic, make_reading(number, keys, at), partition=number % PARTITION_COUNT)
                break
            except BufferError:
                producer.poll(0.1)


def main(bootstrap: str, topic: str, rate: float, records: int, keys: int) -> None:
    """Write the records and wait until the broker has acknowledged them."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "compression.type": "lz4"})
    if rate:
        write_live(producer, topic, rate, records, keys)
    else:
        write_stored(producer, topic, records, keys)
    producer.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap", help="bootstrap server of the broker")
    parser.add_argument("topic", help="topic to write to")
    parser.add_argument("rate", type=float, help="records per second; 0 for as fast as possible")
    parser.add_argument("records", type=int, help="records to write")
    parser.add_argument("keys", type=int, help="distinct keys")
    arguments = parser.parse_args()
    main(arguments.bootstrap, arguments.topic, arguments.rate, arguments.records, arguments.keys)
