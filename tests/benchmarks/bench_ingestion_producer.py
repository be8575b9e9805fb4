"""What the ledger and the contract cost: records per second beside a raw `produce_batch` loop, in one run.

What broken records cost is said beside the same without any. Each round runs every variant once, in turn, against
one broker on the same cores; a ratio is taken within its round. Run it alone:
`python tests/benchmarks/bench_ingestion_producer.py [records] [rounds]`.
"""

import dataclasses
import statistics
import sys
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
from penstock.ingestion.contracts.schemas import avro_schema
from penstock.ingestion.generators import Sensors, evenly
from penstock.ingestion.ledger import Ledger
from penstock.ingestion.producer import Batch, JsonChecker, LedgeredProducer
from penstock.ingestion.producer.avro_checking import AvroChecker
from penstock.ingestion.topics import ensure_topics

ROOT = Path(__file__).parents[2]
AT_LEAST = {
    "raw": None,
    "ledger": 0.85,
    "ledger and JSON contract": 0.6,
    "raw, Avro": None,
    "ledger and Avro contract": 0.6,
    "JSON, one in 100 broken": None,
    "JSON, one in 10 broken": None,
    "JSON, all broken": None,
}
CHECKED = "ledger and JSON contract"
BASE = {
    "ledger and Avro contract": "raw, Avro",
    "raw, Avro": "raw, Avro",
    "JSON, one in 100 broken": CHECKED,
    "JSON, one in 10 broken": CHECKED,
    "JSON, all broken": CHECKED,
}
BATCH = 10_000


@dataclasses.dataclass(frozen=True)
class Work:
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
        return [slice(first, first + BATCH) for first in range(0, len(self.values), BATCH)]


def raw(work: Work) -> float:
    return _raw(work, work.values)


def raw_avro(work: Work) -> float:
    return _raw(work, work.avro_values)


def _raw(work: Work, values: Sequence[bytes]) -> float:
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
    begun = time.perf_counter()
    for part in work.batches():
        pairs = zip(values[part], work.keys[part], strict=True)
        producer.produce_batch(topic, [{"value": value, "key": key} for value, key in pairs])
        producer.poll(0)
    producer.flush()
    return len(work.values) / (time.perf_counter() - begun)


def with_ledger(work: Work) -> float:
    return _delivered(work, lambda part: Batch(work.values[part], part.start, work.keys[part]))


def with_contract(work: Work) -> float:
    checker = JsonChecker(work.contract)
    return _delivered(work, lambda part: checker.check(Batch(work.values[part], part.start)))


def with_broken_records(every: int) -> Callable[[Work], float]:
    """Deliver as with the contract, with one record of so many cut in half, which goes to the dead letters."""

    def deliver(work: Work) -> float:
        values = [v[: len(v) // 2] if place % every == 0 else v for place, v in enumerate(work.values)]
        return with_contract(dataclasses.replace(work, values=values))

    return deliver


def with_avro_contract(work: Work) -> float:
    checker = AvroChecker(work.avro)
    return _delivered(
        work, lambda part: checker.check(Batch(work.avro_values[part], part.start, encoded=True))
    )


def _delivered(work: Work, batch_of: Callable[[slice], Batch]) -> float:
    contract = work.new_topic("ledger")
    ledger = Ledger(work.folder / contract.topic, lambda: time.time_ns() // 1_000_000)
    producer = LedgeredProducer(work.broker.bootstrap, contract.topic, ledger)
    producer.resume(None)
    begun = time.perf_counter()
    for part in work.batches():
        producer.send(batch_of(part))
    producer.flush()
    rate = len(work.values) / (time.perf_counter() - begun)
    producer.close()
    return rate


VARIANTS: dict[str, Callable[[Work], float]] = {
    "raw": raw,
    "ledger": with_ledger,
    "ledger and JSON contract": with_contract,
    "raw, Avro": raw_avro,
    "ledger and Avro contract": with_avro_contract,
    "JSON, one in 100 broken": with_broken_records(100),
    "JSON, one in 10 broken": with_broken_records(10),
    "JSON, all broken": with_broken_records(1),
}


def prepared(broker: LocalBroker, folder: Path, number: int) -> Work:
    contract = load_contract("sensors")
    records = list(islice(Sensors(1).records(0, evenly(1_700_000_000_000, 1_000)), number))
    codec = json_codec(contract)
    values = [codec.encode(record) for record in records]
    avro = AvroCodec(contract, 1, {1: avro_schema(contract)}.get)
    keys = [record.device.encode() for record in records]
    return Work(broker, folder, contract, values, keys, avro, [avro.encode(record) for record in records])


def measure(number: int, rounds: int) -> dict[str, list[float]]:
    jars = ensure_jars(ROOT / ".penstock" / "jars", ["kafka"])
    found: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalBroker.in_directory(Path(folder) / "broker", jars, heap_mb=512) as broker,
    ):
        work = prepared(broker, Path(folder), number)
        for variant in VARIANTS.values():
            variant(work)
        for _ in range(rounds):
            for name, variant in VARIANTS.items():
                found[name].append(variant(work))
    return found


def main() -> None:
    number, rounds = (int(value) for value in (sys.argv[1:] + ["200000", "7"][len(sys.argv) - 1 :]))
    found = measure(number, rounds)
    table = Table(title=f"{number} records of about 130 bytes, {rounds} rounds", title_justify="left")
    for column in ("variant", "records/s", "of its base", "lowest", "highest", "at least"):
        table.add_column(column, justify="left" if column == "variant" else "right")
    for name, rates in found.items():
        ratios = [rate / base for rate, base in zip(rates, found[BASE.get(name, "raw")], strict=True)]
        bar = AT_LEAST[name]
        table.add_row(
            name,
            f"{statistics.median(rates):,.0f}",
            f"{statistics.median(ratios):.2f}",
            f"{min(ratios):.2f}",
            f"{max(ratios):.2f}",
            "" if bar is None else f"{bar:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
