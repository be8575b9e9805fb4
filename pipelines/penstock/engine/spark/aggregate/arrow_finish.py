"""Computes the parts of partials that Spark's aggregates cannot, from values that Spark collected for each group.

This is a last step of the batch's job in the executors' Python workers, and only for stages with such a part. It
handles all groups of an Arrow batch in one call, never single records.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.engine.operators.compiled_stage import CompiledStage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FinishFunction = Callable[[pa.Array], pa.Array]


def finish_groups(grouped: "DataFrame", stage: CompiledStage) -> "DataFrame":
    """Return partials with every part in its final type."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    unfinished = {part.name: part for part in stage.parts if part.finish_raw is not None}
    if not unfinished:
        return grouped
    schema = StructType(
        [
            StructField(field.name, from_arrow_type(unfinished[field.name].type))
            if field.name in unfinished
            else field
            for field in grouped.schema.fields
        ]
    )
    finishers = {
        name: (part.finish_raw, part.type) for name, part in unfinished.items() if part.finish_raw is not None
    }
    return grouped.mapInArrow(make_batch_finisher(finishers), schema)


def make_batch_finisher(
    finishers: Mapping[str, tuple[FinishFunction, pa.DataType]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function over Arrow batches of groups. It computes no value for groups of excluded records."""

    def finish_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            is_included = batch.column("_fate").is_null()
            for name, (finish_part, result_type) in finishers.items():
                groups = batch.column(name).filter(is_included)
                finished_values = (
                    _scatter_to_included(finish_part(groups), is_included)
                    if len(groups)
                    else pa.nulls(len(is_included), result_type)
                )
                batch = batch.set_column(batch.schema.get_field_index(name), name, finished_values)
            yield batch

    return finish_batches


def _scatter_to_included(values: pa.Array, is_included: pa.Array) -> pa.Array:
    """Put the values of the included groups into their rows; the other rows get nulls."""
    included_rows = np.asarray(is_included)
    return values.take(pa.array(np.cumsum(included_rows) - 1, mask=~included_rows))
