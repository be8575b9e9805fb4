"""Columns of single records that follow from others: Spark does not make or send them, they are added here.

Where a stage takes records one by one they come from Spark as they are, and each column costs for every record.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.spark.inputs import Sources
from penstock.pipelines.spark.multiplying import FIRST_ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Implied: TypeAlias = Mapping[str, Callable[[pa.Table], pa.Array | pa.ChunkedArray]]
"""Columns by name, and how each is made of the others."""


def implied(
    stage: ReadyStage, sources: Sources, topics: Collection[str], columns: Collection[str], *, repeats: bool
) -> Implied:
    """What follows from the other columns of a stage's partials, by the topics and the columns of its records.

    Nothing does where records are counted together before they are sent: then partials are few.
    """
    found: dict[str, Callable[[pa.Table], pa.Array | pa.ChunkedArray]] = {}
    if not stage.in_order:
        return found
    if len(topics) == 1:
        (topic,) = topics
        found["_topic"] = lambda told: pa.repeat(pa.scalar(topic, pa.string()), told.num_rows)
    if FIRST_ROW not in columns:
        found["_counted"] = lambda told: pa.array(np.ones(told.num_rows, np.int64))
    # A repeat moves the watermark as its first did, and has no time of its own in a partial.
    if not repeats and all(source.watermark.max_ahead is None for source in sources):
        found["_newest"] = lambda told: told.column("_time")
    return found


def fetch(frame: "DataFrame", schema: pa.Schema, missing: Implied) -> pa.Table:
    """Fetch rows without some columns, and add these."""
    told = frame.drop(*missing).toArrow()
    for name, make in missing.items():
        told = told.append_column(name, make(told))
    return told.select(schema.names).cast(schema)
