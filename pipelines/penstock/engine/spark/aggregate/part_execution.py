"""Merges partials into the state in Spark's executors, one task for each part of the state.

A shuffle sends partials to the task of their part; neither partials nor state pass through the driver. Each task
maps the state files into memory, so all executors must see their folder. Tasks return file names, panes and counts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA, RemotePartials
from penstock.engine.batch.part_execution import PartResult, PartTask, decode_part, encode_part
from penstock.engine.spark.poison_records import translate_sum_overflow
from penstock.engine.state.hash_parts import PART_COUNT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART_FIELD = pa.field("_part", pa.int32())


@dataclass(frozen=True)
class SparkPartExecutor:
    """Processes the parts of a batch in the tasks of one Spark job."""

    session: "SparkSession"

    def process_parts(self, task: PartTask, partials: "pa.Table | RemotePartials") -> Iterable[PartResult]:
        """Process every part, in as many tasks as a shuffle has partitions."""
        if isinstance(partials, pa.Table):
            frame = self.session.createDataFrame(partials)
        else:
            assert isinstance(partials, PersistedPartials)
            frame = partials.frame
        with_parts = frame.where("_fate IS NULL").mapInArrow(
            _make_part_assigner(task), _schema_with_part(frame)
        )
        rows = with_parts.unionByName(self._empty_row_per_part(with_parts)).groupBy(PART_FIELD.name)
        with translate_sum_overflow():
            encoded_parts = rows.applyInArrow(_make_part_updater(task), "encoded_part BINARY").toArrow()
        return [decode_part(payload) for payload in encoded_parts.column("encoded_part").to_pylist()]

    def _empty_row_per_part(self, with_parts: "DataFrame") -> "DataFrame":
        """Return an empty row for each part, so that parts without partials are processed as well."""
        null_columns = [
            f"cast(NULL AS {struct_field.dataType.simpleString()}) AS `{struct_field.name}`"
            for struct_field in with_parts.schema.fields
        ]
        return self.session.range(PART_COUNT).selectExpr(
            *null_columns[:-1], f"cast(id AS INT) AS {PART_FIELD.name}"
        )


@dataclass(frozen=True)
class PersistedPartials(RemotePartials):
    """Partials that Spark keeps in the executors, with their summary and size."""

    frame: "DataFrame"
    summary: pa.Table
    rows: int
    nbytes: int
    schema: pa.Schema
    persisted: "DataFrame"
    """The persisted frame: these partials, and those of other stages if they share a job."""

    def fetch(self) -> pa.Table:
        """Fetch all of them into the driver."""
        included = self.frame.where("_fate IS NULL").toArrow().select(self.schema.names).cast(self.schema)
        excluded = self.summary.filter(self.summary.column("_fate").is_valid())
        return pa.concat_tables([included, excluded], promote_options="default").select(self.schema.names)

    def release(self) -> None:
        """Free them in the executors."""
        self.persisted.unpersist()


def persist_partials(partials: "DataFrame", schema: pa.Schema) -> PersistedPartials:
    """Compute partials, keep them in the executors, and summarize them."""
    from pyspark.sql.functions import expr

    persisted = partials.persist()
    sums = persisted.groupBy("_topic", "_partition", "_fate").agg(
        expr("sum(_counted) AS _counted"), expr("max(_newest) AS _newest"), expr("count(1) AS _rows")
    )
    totals = sums.toArrow()
    included = totals.filter(totals.column("_fate").is_null())
    summary = totals.select(ACCOUNT_SCHEMA.names).cast(ACCOUNT_SCHEMA)
    rows = sum(included.column("_rows").to_pylist())
    return PersistedPartials(persisted, summary, rows, persisted_bytes(persisted), schema, persisted)


def persisted_bytes(persisted: "DataFrame") -> int:
    """Return the bytes of a persisted frame, which Spark measures while it persists it."""
    return int(persisted._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())  # noqa: SLF001  # no public API


def _schema_with_part(frame: "DataFrame") -> Any:
    from pyspark.sql.types import IntegerType, StructField, StructType

    return StructType([*frame.schema.fields, StructField(PART_FIELD.name, IntegerType())])


def _make_part_assigner(task: PartTask) -> Any:
    def assign_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            parts = pa.array(task.assign_parts(rows), PART_FIELD.type)
            yield from rows.append_column(PART_FIELD, parts).to_batches()

    return assign_parts


def _make_part_updater(task: PartTask) -> Any:
    def update_part(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        partials = rows.filter(rows.column("_counted").is_valid()).drop_columns([PART_FIELD.name])
        partials_schema = pa.schema([*ACCOUNT_SCHEMA, *task.stage.partial_schema])
        part_result = task.process_part(
            key[0].as_py(), partials.select(partials_schema.names).cast(partials_schema)
        )
        return pa.table({"encoded_part": pa.array([encode_part(part_result)], pa.binary())})

    return update_part
