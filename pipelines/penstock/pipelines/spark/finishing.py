"""What Spark's own aggregates cannot make: values that it collected for each group become partials, over Arrow.

This is one more step at the end of the batch's job, in the executors' Python workers, and only where a stage has
such a part: a worker is asked for all groups of an Arrow batch at once, never for a single record.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.stage import ReadyStage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Finish = Callable[[pa.Array], pa.Array]


def finished(grouped: "DataFrame", stage: ReadyStage) -> "DataFrame":
    """Partials with every part as the fold wants it."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    unfinished = {part.name: part for part in stage.parts if part.finish is not None}
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
    steps = {name: (part.finish, part.type) for name, part in unfinished.items() if part.finish is not None}
    return grouped.mapInArrow(finishing(steps), schema)


def finishing(
    steps: Mapping[str, tuple[Finish, pa.DataType]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what is done to each Arrow batch of groups. Nobody is asked about records that are set aside."""

    def finish(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            good = batch.column("_set_aside").is_null()
            for name, (step, kind) in steps.items():
                groups = batch.column(name).filter(good)
                made = _spread(step(groups), good) if len(groups) else pa.nulls(len(good), kind)
                batch = batch.set_column(batch.schema.get_field_index(name), name, made)
            yield batch

    return finish


def _spread(made: pa.Array, good: pa.Array) -> pa.Array:
    """Put what was made of the good groups back in their places; the others have nulls."""
    there = np.asarray(good)
    return made.take(pa.array(np.cumsum(there) - 1, mask=~there))
