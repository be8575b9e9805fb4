"""Measures the cost of the ledger, the contract and invalid records: records per second relative to a baseline.

The baseline is a plain `produce_batch` loop or, for invalid records, the same variant with valid records only. Each
round runs every variant once against one broker, and ratios are computed within a round. Run nothing else
meanwhile: `python tests/benchmarks/bench_ingestion_producer.py [RECORDS] [ROUNDS]`.
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, json_codec, load_contract
from penstock.ingestion.contracts.avro_codec import AvroCodec
from penstock.ingestion.contracts.schemas import to_avro_schema
from penstock.ingestion.generators import SensorGenerator, make_even_send_times
from penstock.ingestion.ledger import DeliveryLedger
from penstock.ingestion.producer import JsonChecker, LedgeredProducer, SourceBatch
from penstock.ingestion.producer.encoding_checker import EncodingChecker
from penstock.ingestion.topics import ensure_topics

ROOT = Path(__file__).parents[2]
MIN_RATIOS = {
    "raw": None,
    "ledger": 0.85,
    "ledger and JSON contract": 0.6,
    "raw, Avro": None,
    "ledger and Avro contract": 0.6,
    "JSON, 1 in 100 invalid": None,
    "JSON, 1 in 10 invalid": None,
    "JSON, all invalid": None,
}
CHECKED_VARIANT = "ledger and JSON contract"
BASELINE_VARIANTS = {
    "ledger and Avro contract": "raw, Avro",
    "raw, Avro": "raw, Avro",
    "JSON, 1 in 100 invalid": CHECKED_VARIANT,
    "JSON, 1 in 10 invalid": CHECKED_VARIANT,
    "JSON, all invalid": CHECKED_VARIANT,
}
BATCH_RECORDS = 10_000


@dataclasses.dataclass(frozen=True)
class ProducerWorkload:
    broker: LocalBroker
    folder: Path
    contract: Contract
    values: Sequence[bytes]
    keys: Sequence[bytes]
    avro: AvroCodec
    avro_values: Sequence[bytes]

    def new_topic(self, name: str) -> Contract:
        contract = dataclasses.replace(self.contract, topic=f"{name.replace(' ', '-')}-{time.monotonic_ns()}")
        ensure_topics(self.broker.bootstrap, [contract])
        return contract

    def batches(self) -> Sequence[slice]:
        return [slice(first, first + BATCH_RECORDS) for first in range(0, len(self.values), BATCH_RECORDS)]


def send_raw(work: ProducerWorkload) -> float:
    return _send_raw(work, work.values)


def send_raw_avro(work: ProducerWorkload) -> float:
    return _send_raw(work, work.avro_values)


def _send_raw(work: ProducerWorkload, values: Sequence[bytes]) -> float:
    topic = work.new_topic("raw").topic
    producer = Producer(
        {
            "bootstrap.servers": work.broker.bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.list_topics(topic)
    started_at = time.perf_counter()
    for part in work.batches():
        pairs = zip(values[part], work.keys[part], strict=True)
        producer.produce_batch(topic, [{"value": value, "key": key} for value, key in pairs])
        producer.poll(0)
    producer.flush()
    return len(work.values) / (time.perf_counter() - started_at)


def send_with_ledger(work: ProducerWorkload) -> float:
    return _deliver_with_ledger(
        work, lambda part: SourceBatch(work.values[part], part.start, work.keys[part])
    )


def send_with_contract(work: ProducerWorkload) -> float:
    checker = JsonChecker(work.contract)
    return _deliver_with_ledger(work, lambda part: checker.check(SourceBatch(work.values[part], part.start)))


def make_invalid_records_variant(every: int) -> Callable[[ProducerWorkload], float]:
    """Return a variant in which one of `every` records is invalid and becomes a dead letter."""

    def deliver(work: ProducerWorkload) -> float:
        values = [v[: len(v) // 2] if position % every == 0 else v for position, v in enumerate(work.values)]
        return send_with_contract(dataclasses.replace(work, values=values))

    return deliver


def send_with_avro_contract(work: ProducerWorkload) -> float:
    checker = EncodingChecker(work.avro)
    return _deliver_with_ledger(
        work, lambda part: checker.check(SourceBatch(work.avro_values[part], part.start, is_encoded=True))
    )


def _deliver_with_ledger(work: ProducerWorkload, batch_of: Callable[[slice], SourceBatch]) -> float:
    contract = work.new_topic("ledger")
    ledger = DeliveryLedger(work.folder / contract.topic, lambda: time.time_ns() // 1_000_000)
    producer = LedgeredProducer(work.broker.bootstrap, contract.topic, ledger)
    producer.resume(None)
    started_at = time.perf_counter()
    for part in work.batches():
        producer.send(batch_of(part))
    producer.flush()
    rate = len(work.values) / (time.perf_counter() - started_at)
    producer.close()
    return rate


VARIANTS: dict[str, Callable[[ProducerWorkload], float]] = {
    "raw": send_raw,
    "ledger": send_with_ledger,
    "ledger and JSON contract": send_with_contract,
    "raw, Avro": send_raw_avro,
    "ledger and Avro contract": send_with_avro_contract,
    "JSON, 1 in 100 invalid": make_invalid_records_variant(100),
    "JSON, 1 in 10 invalid": make_invalid_records_variant(10),
    "JSON, all invalid": make_invalid_records_variant(1),
}


def prepare_workload(broker: LocalBroker, folder: Path, number: int) -> ProducerWorkload:
    contract = load_contract("sensors")
    records = list(
        islice(SensorGenerator(1).generate_records(0, make_even_send_times(1_700_000_000_000, 1_000)), number)
    )
    codec = json_codec(contract)
    values = [codec.encode(record) for record in records]
    avro = AvroCodec(contract, 1, {1: to_avro_schema(contract)}.get)
    keys = [record.device.encode() for record in records]
    return ProducerWorkload(
        broker, folder, contract, values, keys, avro, [avro.encode(record) for record in records]
    )


def measure_variants(number: int, rounds: int) -> dict[str, list[float]]:
    jars = ensure_jars(ROOT / ".penstock" / "jars", ["kafka"])
    rates: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalBroker.in_directory(Path(folder) / "broker", jars, heap_mb=512) as broker,
    ):
        work = prepare_workload(broker, Path(folder), number)
        for variant in VARIANTS.values():
            variant(work)
        for _ in range(rounds):
            for name, variant in VARIANTS.items():
                rates[name].append(variant(work))
    return rates


def main(number: int, rounds: int) -> None:
    """Measure every variant, and print a row for each."""
    measured = measure_variants(number, rounds)
    table = Table(title=f"{number} records of about 130 bytes, {rounds} rounds", title_justify="left")
    for column in ("variant", "records/s", "of baseline", "min", "max", "required"):
        table.add_column(column, justify="left" if column == "variant" else "right")
    for name, rates in measured.items():
        ratios = [
            rate / baseline
            for rate, baseline in zip(rates, measured[BASELINE_VARIANTS.get(name, "raw")], strict=True)
        ]
        required = MIN_RATIOS[name]
        table.add_row(
            name,
            f"{statistics.median(rates):,.0f}",
            f"{statistics.median(ratios):.2f}",
            f"{min(ratios):.2f}",
            f"{max(ratios):.2f}",
            "" if required is None else f"{required:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "records", nargs="?", type=int, default=200_000, help="records per run (default: %(default)s)"
    )
    parser.add_argument(
        "rounds", nargs="?", type=int, default=7, help="measured rounds (default: %(default)s)"
    )
    arguments = parser.parse_args()
    main(arguments.records, arguments.rounds)
