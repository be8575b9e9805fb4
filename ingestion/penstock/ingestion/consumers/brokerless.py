"""Reading a source without a broker between: what a broker adds is what is missing here.

The same lines, `socket -> consumer` and `socket -> topic -> consumer`:

- A slow consumer: direct, it holds the sender back, who must wait or drop. Through a topic the sender goes on; the
  lag grows, and is worked off.
- A dead consumer: direct, all is gone that it had received, and that is sent until it is back. Through a topic it
  goes on where it was.
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
    """Hand each record of a source to `handle` as it comes, until the source ends, `stop` is set, or enough came.

    Nothing is written down anywhere: this is the comparison, not a way to run anything.
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
