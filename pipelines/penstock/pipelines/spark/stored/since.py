"""Where stored records begin: an archive that its topic goes on from, and a part that begins later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.errors import StoredError
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.spark.stored.together import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Since:
    """The records of a part from some offsets on, given by the names of partitions; others are read whole."""

    part: Stored
    starts: Mapping[str, int]

    def ranges(self) -> tuple[Range, ...]:
        """Every partition from where it is to begin; StoredError where the part begins later."""
        return tuple(self._from(span) for span in self.part.ranges())

    def records(self, ranges: Sequence[Range]) -> "DataFrame":
        """The records of these ranges."""
        return self.part.records(ranges)

    def _from(self, span: Range) -> Range:
        start = self.starts.get(span.name, span.start)
        if start < span.start:
            raise StoredError(
                span.name,
                f"it is to be read from offset {start}, and begins at {span.start}",
                "Read the archive, where there is one, or begin later",
            )
        return replace(span, start=min(start, span.end))


@dataclass(frozen=True)
class Continued:
    """The records of an archive, and from where it ends those of its topic."""

    archive: Stored
    topic: Stored

    def ranges(self) -> tuple[Range, ...]:
        """Every partition from the archive's first record to the topic's last."""
        archived = {span.name: span for span in self.archive.ranges()}
        return tuple(_joined(archived.get(span.name), span) for span in self.topic.ranges())

    def records(self, ranges: Sequence[Range]) -> "DataFrame":
        """The records of these ranges, each from the archive if it is there."""
        ends = {span.name: span.end for span in self.archive.ranges()}
        old = [replace(span, end=min(span.end, max(ends.get(span.name, 0), span.start))) for span in ranges]
        new = [replace(span, start=part.end) for span, part in zip(ranges, old, strict=True)]
        read = [
            part.records(spans).select(*COLUMNS)
            for part, spans in ((self.archive, old), (self.topic, new))
            if any(span.end > span.start for span in spans)
        ]
        return read[0].unionAll(read[1]) if len(read) > 1 else (read or [self.topic.records(new)])[0]


def _joined(archived: Range | None, topic: Range) -> Range:
    if archived is None:
        return topic
    if archived.end < topic.start:
        raise StoredError(
            topic.name,
            f"its archive ends at {archived.end}, and the topic begins at {topic.start}: what was between is gone",
            "Read the topic alone",
        )
    return replace(topic, start=archived.start, end=max(archived.end, topic.end))
