"""Source of generated records, at a rate or as fast as possible."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.generators.generator import RecordGenerator
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.checker import EncodeRecord, encode_batch
from penstock.ingestion.sources.source import EMPTY_BATCH, ReplayableSource

_MAX_BATCH_RECORDS = 5_000
# After a pause, a feed resumes at its rate. It catches up on at most this much time.
_MAX_CATCH_UP_MS = 1_000


class GeneratorSource(ReplayableSource):
    """Records of a generator, with the time at which they are generated.

    A position contains that time, so that a batch can be generated again. If `rate` is None, records are generated
    as fast as they are consumed.
    """

    def __init__(
        self,
        generator: RecordGenerator,
        contract: Contract,
        clock: Callable[[], int],
        *,
        rate: float | None = None,
        encode: EncodeRecord | None = None,
    ) -> None:
        self.description = f"generator {generator.name}"
        self._generator = generator
        self._contract = contract
        self._clock = clock
        self._rate = rate
        self._encode = encode or json_codec(contract).encode

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches from a position on, without end."""
        next_number = 0
        if position is not None:
            next_number = position["next"] + position["count"]
            yield self._make_batch(position["next"], position["count"], position["now"])
        rate_start_ms, rate_start_number = self._clock(), next_number
        while True:
            now_ms = self._clock()
            due_records = (
                _MAX_BATCH_RECORDS
                if self._rate is None
                else rate_start_number + int((now_ms - rate_start_ms) * self._rate / 1_000) - next_number
            )
            if due_records <= 0:
                yield EMPTY_BATCH
                continue
            yield self._make_batch(next_number, min(due_records, _MAX_BATCH_RECORDS), now_ms)
            next_number += min(due_records, _MAX_BATCH_RECORDS)
            if self._rate is not None and due_records > self._rate * _MAX_CATCH_UP_MS / 1_000 + 1:
                rate_start_ms, rate_start_number = now_ms, next_number

    def _make_batch(self, first_number: int, count: int, now_ms: int) -> SourceBatch:
        records = islice(self._generator.generate_records(first_number, lambda _number: now_ms), count)
        return encode_batch(
            self._contract, list(records), {"next": first_number, "count": count, "now": now_ms}, self._encode
        )
