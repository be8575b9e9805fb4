"""Combines an archive with its topic, and starts a source at given offsets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.errors import BoundedInputError
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.union_source import TOPIC_ROW_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SourceFromOffsets:
    """A source from these start offsets, by partition name; other partitions are read whole."""

    source: BoundedSource
    start_offsets: Mapping[str, int]

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return every partition from its start offset; raise BoundedInputError when the source starts later."""
        return tuple(self._clip_start(span) for span in self.source.list_ranges())

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the records of these ranges."""
        return self.source.read_records(ranges)

    def _clip_start(self, span: OffsetRange) -> OffsetRange:
        start = self.start_offsets.get(span.name, span.start)
        if start < span.start:
            raise BoundedInputError(
                span.name,
                f"cannot start at offset {start}: its first offset is {span.start}",
                "Read the archive if the topic has one, or start later",
            )
        return replace(span, start=min(start, span.end))


@dataclass(frozen=True)
class ArchiveThenTopicSource:
    """The records of an archive, then those of its topic from the end of the archive on."""

    archive: BoundedSource
    topic: BoundedSource

    def list_ranges(self) -> tuple[OffsetRange, ...]:
        """Return every partition from the first archived record to the topic's end."""
        archived = {span.name: span for span in self.archive.list_ranges()}
        return tuple(_join_ranges(archived.get(span.name), span) for span in self.topic.list_ranges())

    def read_records(self, ranges: Sequence[OffsetRange]) -> "DataFrame":
        """Return the records of these ranges, from the archive as far as it has them."""
        archive_ends = {span.name: span.end for span in self.archive.list_ranges()}
        archive_ranges = [
            replace(span, end=min(span.end, max(archive_ends.get(span.name, 0), span.start)))
            for span in ranges
        ]
        topic_ranges = [
            replace(span, start=source.end) for span, source in zip(ranges, archive_ranges, strict=True)
        ]
        frames = [
            source.read_records(spans).select(*TOPIC_ROW_COLUMNS)
            for source, spans in ((self.archive, archive_ranges), (self.topic, topic_ranges))
            if any(span.end > span.start for span in spans)
        ]
        return (
            frames[0].unionAll(frames[1])
            if len(frames) > 1
            else (frames or [self.topic.read_records(topic_ranges)])[0]
        )


def _join_ranges(archived: OffsetRange | None, topic: OffsetRange) -> OffsetRange:
    if archived is None:
        return topic
    if archived.end < topic.start:
        raise BoundedInputError(
            topic.name,
            f"its archive ends at {archived.end}, but the topic starts at {topic.start}; records between are lost",
            "Read the topic alone",
        )
    return replace(topic, start=archived.start, end=max(archived.end, topic.end))
