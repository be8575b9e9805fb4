"""Columns of single records that follow from others: Spark does not make or send them, they are added here.

Where a stage takes records one by one they come from Spark as they are, and each column costs for every record.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.spark.parse.input_columns import Sources
from penstock.engine.spark.transform.row_multiplication import FIRST_ROW_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DerivedColumns: TypeAlias = Mapping[str, Callable[[pa.Table], pa.Array | pa.ChunkedArray]]
"""Columns by name, and how each is made of the others."""


def find_derived_columns(
    stage: CompiledStage,
    sources: Sources,
    topics: Collection[str],
    columns: Collection[str],
    *,
    has_duplicates: bool,
) -> DerivedColumns:
    """What follows from the other columns of a stage's partials, by the topics and the columns of its records.

    Nothing does where records are counted together before they are sent: then partials are few.
    """
    derived: dict[str, Callable[[pa.Table], pa.Array | pa.ChunkedArray]] = {}
    if not stage.is_ordered:
        return derived
    if len(topics) == 1:
        (topic,) = topics
        derived["_topic"] = lambda rows: pa.repeat(pa.scalar(topic, pa.string()), rows.num_rows)
    if FIRST_ROW_COLUMN not in columns:
        derived["_counted"] = lambda rows: pa.array(np.ones(rows.num_rows, np.int64))
    # A repeat moves the watermark as its first did, and has no time of its own in a partial.
    if not has_duplicates and all(source.watermark.max_future_skew is None for source in sources):
        derived["_newest"] = lambda rows: rows.column("_time")
    return derived


def fetch_rows(frame: "DataFrame", schema: pa.Schema, derived: DerivedColumns) -> pa.Table:
    """Fetch rows without some columns, and add these."""
    rows = frame.drop(*derived).toArrow()
    for name, compute_column in derived.items():
        rows = rows.append_column(name, compute_column(rows))
    return rows.select(schema.names).cast(schema)
