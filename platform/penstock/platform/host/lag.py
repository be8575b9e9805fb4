"""How many records wait for each stream, as of now: a batch that hangs tells nothing, and records go on to come."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager

from confluent_kafka import Consumer, KafkaException, TopicPartition

from penstock.ingestion.clients import ClientSettings
from penstock.pipelines.host.repeating import repeating

log = logging.getLogger(__name__)

EVERY_SECONDS = 15.0
PATIENCE_SECONDS = 2.0

Offsets = Mapping[tuple[str, int], int]


class TopicEnds:
    """Asks the broker where partitions end; as a consumer, for an admin client may abort with its broker."""

    def __init__(self, bootstrap: str, client: ClientSettings) -> None:
        of_nobody = {"group.id": "penstock-lag", "enable.auto.commit": "false", "log_level": "2"}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **of_nobody, **client})

    def __call__(self, places: Collection[tuple[str, int]]) -> Offsets:
        """Return the ends of partitions, of those that are there. KafkaException where the broker is away."""
        asked = {place: TopicPartition(*place) for place in places}
        found = {
            place: self._consumer.get_watermark_offsets(one, timeout=PATIENCE_SECONDS)
            for place, one in asked.items()
        }
        return {place: bounds[1] for place, bounds in found.items() if bounds is not None}

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()


class LagWatch:
    """Shows what waits for the streams at work, again and again; what the broker does not tell stays as it was."""

    def __init__(
        self,
        at_work: Callable[[], Mapping[str, Offsets]],
        ends: Callable[[Collection[tuple[str, int]]], Offsets],
        show: Callable[[Mapping[str, int]], None],
    ) -> None:
        self._at_work = at_work
        self._ends = ends
        self._show = show

    def look(self) -> None:
        """Look once."""
        read = self._at_work()
        try:
            ends = self._ends({place for offsets in read.values() for place in offsets})
        except KafkaException as problem:
            log.debug("the broker does not tell what waits for streams: %s", problem)
            return
        self._show(
            {
                stream: sum(max(ends.get(place, offset) - offset, 0) for place, offset in offsets.items())
                for stream, offsets in read.items()
            }
        )


@contextmanager
def lag_shown(
    bootstrap: str,
    client: ClientSettings,
    at_work: Callable[[], Mapping[str, Offsets]],
    show: Callable[[Mapping[str, int]], None],
) -> Iterator[None]:
    """Show what waits for streams while the context lasts."""
    with closing(TopicEnds(bootstrap, client)) as ends:
        watch = LagWatch(at_work, ends, show)
        with repeating(EVERY_SECONDS, watch.look, "lag"):
            yield
