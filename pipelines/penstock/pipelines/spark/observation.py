"""What a batch read, counted while it passes on to the user's steps: what these remove must be known as well."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.batch.reading import ACCOUNT_COLUMNS, DUPLICATE, FILTERED, QUARANTINED
from penstock.pipelines.spark.checks import ANY, SEEN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


def observed(
    records: "DataFrame", ranges: Sequence[Range], seen: "Observation | None" = None
) -> "tuple[DataFrame, Observation]":
    """Records that are counted, partition by partition, when they are read.

    `seen` is what sees which checks any of them breaks: it sees both, for to watch records twice costs twice.
    """
    from pyspark.sql import Observation
    from pyspark.sql.functions import expr

    counts = Observation() if seen is None else seen
    measures = [] if seen is None else [expr(f"{ANY} AS {SEEN}")]
    for number, span in enumerate(ranges):
        here = f"_partition = {span.partition} AND _topic = '{span.topic}'"
        measures += [
            expr(f"count_if({here}) AS read_{number}"),
            expr(f"count_if({here} AND _invalid IS NOT NULL) AS bad_{number}"),
            expr(f"count_if({here} AND _aside = '{DUPLICATE}') AS again_{number}"),
            expr(f"max(CASE WHEN {here} AND _invalid IS NULL THEN _moving END) AS newest_{number}"),
        ]
    return records.observe(counts, *measures), counts


def set_aside(
    ranges: Sequence[Range], told: Mapping[str, Any], passed: pa.Table, schema: pa.Schema
) -> pa.Table:
    """Partials for what did not reach a window: records that are no good, repeats, and what a step removed."""
    reached = [0] * len(ranges)
    columns = [passed.column(name).to_pylist() for name in ("_topic", "_partition", "_counted")]
    place = {(span.topic, span.partition): number for number, span in enumerate(ranges)}
    for topic, partition, counted in zip(*columns, strict=True):
        reached[place[topic, partition]] += counted
    rows = []
    for number, span in enumerate(ranges):
        bad, again, newest = (told[f"{name}_{number}"] for name in ("bad", "again", "newest"))
        removed = told[f"read_{number}"] - bad - again - reached[number]
        rows += [(span, QUARANTINED, bad, None), (span, DUPLICATE, again, None)]
        rows += [(span, FILTERED, removed, newest)]
    lines = [
        dict(zip(ACCOUNT_COLUMNS.names, (span.topic, span.partition, fate, count, newest), strict=True))
        for span, fate, count, newest in rows
        if count or newest is not None
    ]
    return pa.Table.from_pylist(lines, schema=schema)
