"""Adds columns of single records that follow from other columns, so that Spark need not compute and send them.

A stage that takes single records fetches them from Spark unaggregated, so each column costs time for every record.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.plan.sources import PlanSource
from penstock.engine.spark.parse.input_columns import Sources
from penstock.engine.spark.transform.row_multiplication import FIRST_ROW_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DerivedColumns: TypeAlias = Mapping[str, Callable[[pa.Table], pa.Array | pa.ChunkedArray]]
"""Columns by name, each with the function that computes it from the others."""


def find_derived_columns(
    stage: CompiledStage,
    sources: Sources,
    topics: Collection[str],
    columns: Collection[str],
    *,
    has_duplicates: bool,
) -> DerivedColumns:
    """Return the columns of a stage's partials that follow from the others.

    `topics` and `columns` are those of the stage's records. The result is empty for a stage whose records Spark
    aggregates: its partials are few.
    """
    derived: dict[str, Callable[[pa.Table], pa.Array | pa.ChunkedArray]] = {}
    if not stage.is_ordered:
        return derived
    if len(topics) == 1:
        (topic,) = topics
        derived["_topic"] = lambda rows: pa.repeat(pa.scalar(topic, pa.string()), rows.num_rows)
    if FIRST_ROW_COLUMN not in columns:
        derived["_counted"] = lambda rows: pa.array(np.ones(rows.num_rows, np.int64))
    # A duplicate advances the watermark like its original, but its partial has no event time. An accepted record
    # that is too far ahead has an event time, but does not advance the watermark.
    if not has_duplicates and not any(map(_accepts_future_times, sources)):
        derived["_newest"] = lambda rows: rows.column("_time")
    return derived


def _accepts_future_times(source: PlanSource) -> bool:
    rule = source.watermark
    return rule.max_future_skew is not None and rule.future_records == "accept"


def fetch_rows(frame: "DataFrame", schema: pa.Schema, derived: DerivedColumns) -> pa.Table:
    """Fetch rows without the derived columns, then add these."""
    rows = frame.drop(*derived).toArrow()
    for name, compute_column in derived.items():
        rows = rows.append_column(name, compute_column(rows))
    return rows.select(schema.names).cast(schema)
