"""Records that a run over stored records excludes, because the live stream has excluded them.

A live stream judges event times by the batch time. A run over the same records starts later, when the time of a
record may have come. So the run goes by what the stream recorded: a record that was too far ahead stays in
quarantine, unless the limit is now larger. A record that a replay has left out stays left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.duration import parse_duration_ms
from penstock.engine.batch.excluded_records import ExcludedRecord, OffsetRanges, ResentFinder
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan
from penstock.engine.storage import StoragePath
from penstock.quality.quarantine.quarantined_records import RecordPosition
from penstock.quality.table_reads import open_table

FUTURE_EVENT_TIME, LEFT_OUT = "future_event_time", "left_out"
_AHEAD_PATTERN = re.compile(rf"{FUTURE_EVENT_TIME}:[^ ]+ \((\S+) ahead of the clock")
_COLUMNS = ["topic", "partition", "offset", "reason", "stream"]


@dataclass(frozen=True)
class RecordedExclusions:
    """Finds the records to exclude: replayed ones, those that the stream excluded, and those to leave out now."""

    plan: Plan
    warehouse: StoragePath
    find_resent: ResentFinder
    left_out: Sequence[tuple[str, RecordPosition]] = ()
    """The topics and positions of records to leave out now."""

    def __call__(self, ranges: OffsetRanges) -> Sequence[ExcludedRecord]:
        """Return the records of these ranges to exclude, each once."""
        found = [*self.find_resent(ranges), *self._list_left_out(ranges), *self._list_recorded(ranges)]
        by_address = {(record.topic, record.partition, record.offset): record for record in reversed(found)}
        return [by_address[address] for address in sorted(by_address)]

    def _list_left_out(self, ranges: OffsetRanges) -> Iterator[ExcludedRecord]:
        for topic, position in self.left_out:
            if _contains(ranges, topic, position.partition, position.offset):
                yield ExcludedRecord(
                    topic, position.partition, position.offset, f"{LEFT_OUT}: by a replay", "as_recorded"
                )

    def _list_recorded(self, ranges: OffsetRanges) -> Iterator[ExcludedRecord]:
        for source in self.plan.sources:
            for row in _read_exclusions(self.warehouse / f"quarantine/{source.name}", self.plan.name):
                address = (row["topic"], row["partition"], row["offset"])
                if _contains(ranges, *address) and _is_still_excluded(row["reason"], source):
                    yield ExcludedRecord(*address, row["reason"], "as_recorded")


def _read_exclusions(path: StoragePath, stream: str) -> list[dict[str, Any]]:
    table = open_table(path)
    if table is None:
        return []
    rows = pa.table(table.to_pyarrow_table(columns=_COLUMNS))
    is_excluded = pc.match_substring_regex(rows.column("reason"), f"^({FUTURE_EVENT_TIME}|{LEFT_OUT})")
    records: list[dict[str, Any]] = rows.filter(
        pc.and_(is_excluded, pc.equal(rows.column("stream"), stream))
    ).to_pylist()
    return records


def _is_still_excluded(reason: str, source: PlanSource) -> bool:
    """Whether the plan excludes a record for a recorded reason."""
    rule = source.watermark
    if reason.startswith(LEFT_OUT):
        return True
    if rule.max_future_skew is None or rule.future_records == "accept":
        return False
    ahead = _AHEAD_PATTERN.match(reason)
    return ahead is None or parse_duration_ms(ahead[1]) > rule.max_future_skew


def _contains(ranges: OffsetRanges, topic: str, partition: int, offset: int) -> bool:
    return any(_is_in(offset_range, topic, partition, offset) for offset_range in ranges)


def _is_in(offset_range: OffsetRange, topic: str, partition: int, offset: int) -> bool:
    return (offset_range.topic, offset_range.partition) == (topic, partition) and (
        offset_range.start <= offset < offset_range.end
    )
