"""What streams read and write by their definitions, kept for a while: loading a definition takes milliseconds."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.engine.archive.archive_names import find_archived_topic
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.sources import TopicOrigin
from penstock.platform.services.stream_catalog import load_plan

KEEP_MS = 30_000


@dataclass(frozen=True)
class StreamEnds:
    """The topics that a stream reads, and the paths that it writes."""

    topics: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


class StreamEndsReader:
    """Returns the ends of streams; what it returns is at most half a minute old."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._known: dict[str, tuple[int, StreamEnds]] = {}

    def read(self, stream: str) -> StreamEnds:
        """Return the ends of a stream; none for one whose file is invalid or removed."""
        now_ms = self._clock()
        read_at_ms, ends = self._known.get(stream, (0, StreamEnds()))
        if now_ms - read_at_ms >= KEEP_MS:
            ends = find_stream_ends(stream)
            self._known[stream] = now_ms, ends
        return ends


def find_stream_ends(stream: str) -> StreamEnds:
    """Return the ends of a stream by its current definition."""
    if (topic := find_archived_topic(stream)) is not None:
        return StreamEnds((topic,), (f"raw/{topic}",))
    try:
        plan = load_plan(stream)
    except DefinitionError:
        return StreamEnds()
    topics = [source.origin.topic for source in plan.sources if isinstance(source.origin, TopicOrigin)]
    outputs = [f"{sink.folder}/{sink.name}" for stage in plan.stages for sink in stage.sinks]
    return StreamEnds(tuple(dict.fromkeys(topics)), tuple(dict.fromkeys(outputs)))
