"""What Spark's own aggregates cannot make: values that it collected for each group become partials, over Arrow.

This is one more step at the end of the batch's job, in the executors' Python workers, and only where a stage has
such a part: a worker is asked for all groups of an Arrow batch at once, never for a single record.
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
    """Partials with every part as the fold wants it."""
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
    """Return what is done to each Arrow batch of groups. Nobody is asked about records that are set aside."""

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
    """Put what was made of the good groups back in their places; the others have nulls."""
    included_rows = np.asarray(is_included)
    return values.take(pa.array(np.cumsum(included_rows) - 1, mask=~included_rows))
