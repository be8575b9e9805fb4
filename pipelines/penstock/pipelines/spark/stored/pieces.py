"""Ranges of addresses: cut into pieces, and asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.pipelines.batch.intent import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def pieces(ranges: Sequence[Range], most: int | None) -> list[tuple[Range, ...]]:
    """Cut ranges into as many pieces as it takes for none to hold more than so many records, or about so."""
    total = sum(span.end - span.start for span in ranges)
    count = 1 if most is None else max(-(-total // most), 1)
    return [tuple(cut(span, number, count) for span in ranges) for number in range(count)]


def cut(span: Range, number: int, count: int) -> Range:
    """Return one of `count` pieces of a range."""
    begin, end = (span.start + (span.end - span.start) * at // count for at in (number, number + 1))
    return Range(span.topic, span.partition, begin, end)


def within(records: "DataFrame", ranges: Sequence[Range]) -> "DataFrame":
    """The records of these ranges."""
    asked = (
        f"(partition = {span.partition} AND offset >= {span.start} AND offset < {span.end})"
        for span in ranges
        if span.end > span.start
    )
    return records.where(" OR ".join(asked) or "false")
