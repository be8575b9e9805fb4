"""What Spark's own aggregates cannot make: values that it collected for each group become partials, over Arrow.

This is one more step at the end of the batch's job, in the executors' Python workers, and only where a stage has
such a part: a worker is asked for all groups of an Arrow batch at once, never for a single record.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

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
    steps = {name: part.finish for name, part in unfinished.items() if part.finish is not None}
    return grouped.mapInArrow(_finishing(steps), schema)


def _finishing(steps: Mapping[str, Finish]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def finish(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name, step in steps.items():
                made = step(batch.column(name))
                batch = batch.set_column(batch.schema.get_field_index(name), name, made)
            yield batch

    return finish
