"""Counts the records of a batch before the user's steps, so that the records that steps filter out are known."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA, FATE_DUPLICATE, FATE_FILTERED, FATE_QUARANTINED
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.spark.parse.row_checks import ANY_BREAKS_SQL, OBSERVED_BREAKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


def observe_records(
    records: "DataFrame", ranges: Sequence[OffsetRange], checks_observation: "Observation | None" = None
) -> "tuple[DataFrame, Observation]":
    """Observe the number of records of each partition while they are read.

    `checks_observation` also collects failed checks. One observation collects both, as each one costs time.
    """
    from pyspark.sql import Observation
    from pyspark.sql.functions import expr

    counts = Observation() if checks_observation is None else checks_observation
    measures = [] if checks_observation is None else [expr(f"{ANY_BREAKS_SQL} AS {OBSERVED_BREAKS}")]
    for number, span in enumerate(ranges):
        in_range = f"_partition = {span.partition} AND _topic = '{span.topic}'"
        measures += [
            expr(f"count_if({in_range}) AS read_{number}"),
            expr(f"count_if({in_range} AND _fate = '{FATE_QUARANTINED}') AS invalid_{number}"),
            expr(f"count_if({in_range} AND _fate = '{FATE_DUPLICATE}') AS duplicate_{number}"),
            expr(
                f"max(CASE WHEN {in_range} AND _invalid IS NULL THEN _watermark_time END) AS newest_{number}"
            ),
        ]
    return records.observe(counts, *measures), counts


def count_excluded_records(
    ranges: Sequence[OffsetRange],
    observed_counts: Mapping[str, Any],
    stage_partials: pa.Table,
    schema: pa.Schema,
) -> pa.Table:
    """Return partials for records that reached no window: invalid, duplicate, and filtered by a step."""
    passed_counts = [0] * len(ranges)
    columns = [stage_partials.column(name).to_pylist() for name in ("_topic", "_partition", "_counted")]
    partition_index = {(span.topic, span.partition): number for number, span in enumerate(ranges)}
    for topic, partition, counted in zip(*columns, strict=True):
        passed_counts[partition_index[topic, partition]] += counted
    rows = []
    for number, span in enumerate(ranges):
        invalid_count, duplicate_count, newest = (
            observed_counts[f"{name}_{number}"] for name in ("invalid", "duplicate", "newest")
        )
        filtered_count = (
            observed_counts[f"read_{number}"] - invalid_count - duplicate_count - passed_counts[number]
        )
        rows += [(span, FATE_QUARANTINED, invalid_count, None), (span, FATE_DUPLICATE, duplicate_count, None)]
        rows += [(span, FATE_FILTERED, filtered_count, newest)]
    lines = [
        dict(zip(ACCOUNT_SCHEMA.names, (span.topic, span.partition, exclusion, count, newest), strict=True))
        for span, exclusion, count, newest in rows
        if count or newest is not None
    ]
    return pa.Table.from_pylist(lines, schema=schema)
