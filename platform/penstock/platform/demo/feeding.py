"""Records into the topics of a demonstration, by the producer that proves what it delivered."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.feed import Feed
from penstock.ingestion.ledger import read_addresses
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.checking import encoded
from penstock.ingestion.sources.source import Repeatable
from penstock.pipelines.batch.intent import Range
from penstock.platform.clock import now_ms
from penstock.platform.demo.sendings import Sending
from penstock.platform.errors import DemoError

BATCH = 2_000
Place = tuple[str, int]


class Prepared(Repeatable):
    """Records that were made before. A position counts them."""

    def __init__(self, contract: Contract, sent: Sequence[Sending]) -> None:
        self.description = f"{len(sent)} prepared records of {contract.topic}"
        self._contract = contract
        self._records = [sending.record for sending in sent]

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield the records from a position on."""
        encode = json_codec(self._contract).encode
        for first in range(position or 0, len(self._records), BATCH):
            yield encoded(self._contract, self._records[first : first + BATCH], first, encode)


@dataclass(frozen=True)
class Delivered:
    """When the record of each offset was sent, by partition, from the offset on that the partition had before."""

    times: Mapping[Place, Sequence[int]]
    before: Mapping[Place, int]

    def ends(self, moment: int) -> dict[Place, int]:
        """Return how far each partition went at a moment."""
        return {
            place: self.before[place] + sum(at < moment for at in times)
            for place, times in self.times.items()
        }

    def ranges(self, before: int, until: int) -> tuple[Range, ...]:
        """Return what came to each partition from a moment on, until another; every partition is named."""
        starts, ends = self.ends(before), self.ends(until)
        return tuple(
            Range(topic, number, starts[topic, number], end) for (topic, number), end in ends.items()
        )


def deliver(
    bootstrap: str,
    contract: Contract,
    sent: Sequence[Sending],
    before: Mapping[Place, int],
    folder: Path,
    tell: Callable[[str], None],
) -> dict[Place, list[int]]:
    """Send records in their order, and return when each of a partition was sent, offset by offset.

    `before` has the next offset of each partition.
    """
    feed = Feed(Prepared(contract, sent), contract, bootstrap, folder, now_ms)
    summary = feed.run(Event(), lambda progress: tell(f"{progress.acknowledged} of {len(sent)} records"))
    if not summary.complete or summary.acknowledged != len(sent) or summary.dead_letters:
        raise DemoError(
            f"of {len(sent)} records for {contract.topic} the broker at {bootstrap} took {summary.acknowledged}, "
            f"{summary.dead_letters} of them as dead letters; its log is beside {folder}"
        )
    times: dict[Place, list[int]] = {place: [] for place in before}
    came: Counter[Place] = Counter()
    for address in read_addresses(folder):
        place = (address.topic, address.partition)
        if address.offset != before[place] + came[place]:
            raise DemoError(
                f"somebody else writes to {contract.topic} at {bootstrap}: stop that, and try again"
            )
        times[place].append(sent[address.sequence].at)
        came[place] += 1
    return times
