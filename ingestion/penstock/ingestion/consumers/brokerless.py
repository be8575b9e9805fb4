"""Reads a source without a broker, to compare it with reading through a topic.

The same lines can take two ways, `socket -> consumer` and `socket -> topic -> consumer`:

- Slow consumer: without a broker it slows down the sender, which must wait or drop records. With a topic the sender
  continues; the lag grows and shrinks again.
- Failed consumer: without a broker all records are lost that it had received or that arrive until it is back. With
  a topic it resumes at its last offset.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from threading import Event

from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.source import RecordSource

_IDLE_PAUSE_S = 0.02


def consume_without_broker(
    source: RecordSource, handle: Callable[[Sequence[bytes]], None], stop: Event, count: int | None = None
) -> int:
    """Pass the records of a source to `handle` until the source ends, `stop` is set, or `count` is reached.

    It records no progress: use it for comparison only.
    """
    handled = 0
    with closing(_read_batches(source)) as batches:
        for batch in batches:
            if stop.is_set():
                break
            if len(batch):
                values = batch.values if count is None else batch.values[: count - handled]
                handle(values)
                handled += len(values)
                if handled == count:
                    break
            else:
                stop.wait(_IDLE_PAUSE_S)
    return handled


def _read_batches(source: RecordSource) -> Generator[SourceBatch]:
    yield from source.read(None)
