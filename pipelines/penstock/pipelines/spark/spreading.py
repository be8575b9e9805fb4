"""The fold in Spark's executors: partials go from the tasks that made them to the tasks that fold their part.

Neither partials nor state pass the driver. Each task maps the files of the state, so the folder in which they lie
must be one that all executors see; what comes back are the names of files, panes, and counts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.pipelines.batch.parts import PartFolded, PartTask, decoded, encoded
from penstock.pipelines.batch.reading import ACCOUNT_COLUMNS, Weighed
from penstock.pipelines.spark.poison import sums_in_words
from penstock.pipelines.state.parts import COUNT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART = pa.field("_part", pa.int32())


@dataclass(frozen=True)
class SparkSpreader:
    """Folds the parts of a batch in the tasks of one Spark job."""

    session: "SparkSession"

    def fold(self, task: PartTask, partials: "pa.Table | Weighed") -> Iterable[PartFolded]:
        """Fold every part, in as many tasks as a shuffle has partitions."""
        if isinstance(partials, pa.Table):
            frame = self.session.createDataFrame(partials)
        else:
            assert isinstance(partials, WeighedPartials)
            frame = partials.frame
        placed = frame.where("_set_aside IS NULL").mapInArrow(_placing(task), _with_part(frame))
        rows = placed.unionByName(self._one_of_each(placed)).groupBy(PART.name)
        with sums_in_words():
            told = rows.applyInArrow(_folding(task), "told BINARY").toArrow()
        return [decoded(one) for one in told.column("told").to_pylist()]

    def _one_of_each(self, placed: "DataFrame") -> "DataFrame":
        """A row for each part that says nothing: so parts without partials are folded as well."""
        nothing = [f"cast(NULL AS {f.dataType.simpleString()}) AS `{f.name}`" for f in placed.schema.fields]
        return self.session.range(COUNT).selectExpr(*nothing[:-1], f"cast(id AS INT) AS {PART.name}")


@dataclass(frozen=True)
class WeighedPartials:
    """Partials that Spark keeps, and what is known of them."""

    frame: "DataFrame"
    summary: pa.Table
    rows: int
    nbytes: int
    schema: pa.Schema
    kept: "DataFrame"
    """What Spark keeps: these partials, and maybe those of other stages beside them."""

    def fetched(self) -> pa.Table:
        """Bring all of them to the driver."""
        good = self.frame.where("_set_aside IS NULL").toArrow().select(self.schema.names).cast(self.schema)
        aside = self.summary.filter(self.summary.column("_set_aside").is_valid())
        return pa.concat_tables([good, aside], promote_options="default").select(self.schema.names)

    def release(self) -> None:
        """Let Spark forget them."""
        self.kept.unpersist()


def weighed(partials: "DataFrame", schema: pa.Schema) -> WeighedPartials:
    """Make partials, keep them in the executors, and ask what they amount to."""
    from pyspark.sql.functions import expr

    kept = partials.persist()
    sums = kept.groupBy("_topic", "_partition", "_set_aside").agg(
        expr("sum(_counted) AS _counted"), expr("max(_newest) AS _newest"), expr("count(1) AS _rows")
    )
    found = sums.toArrow()
    good = found.filter(found.column("_set_aside").is_null())
    summary = found.select(ACCOUNT_COLUMNS.names).cast(ACCOUNT_COLUMNS)
    rows = sum(good.column("_rows").to_pylist())
    return WeighedPartials(kept, summary, rows, bytes_of(kept), schema, kept)


def bytes_of(kept: "DataFrame") -> int:
    """What a frame that is kept takes: Spark weighs each batch of it when it is made."""
    return int(kept._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())  # noqa: SLF001  # no way by Python


def _with_part(frame: "DataFrame") -> Any:
    from pyspark.sql.types import IntegerType, StructField, StructType

    return StructType([*frame.schema.fields, StructField(PART.name, IntegerType())])


def _placing(task: PartTask) -> Any:
    def place(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            parts = pa.array(task.parts(rows), PART.type)
            yield from rows.append_column(PART, parts).to_batches()

    return place


def _folding(task: PartTask) -> Any:
    def fold(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        partials = rows.filter(rows.column("_counted").is_valid()).drop_columns([PART.name])
        wanted = pa.schema([*ACCOUNT_COLUMNS, *task.stage.partial_columns])
        part = task.fold(key[0].as_py(), partials.select(wanted.names).cast(wanted))
        return pa.table({"told": pa.array([encoded(part)], pa.binary())})

    return fold
