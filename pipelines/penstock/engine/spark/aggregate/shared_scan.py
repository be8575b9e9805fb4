"""Runs several stages over the same records in one job, which reads and parses each record once.

The frame of each stage gets columns of its own in a union of all frames, together with the counts of the records.
The union is fetched, or persisted in the executors when it may be too large to fetch.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA, FATE_FILTERED
from penstock.engine.definition.predicates import quote_column
from penstock.engine.spark.aggregate.part_execution import PersistedPartials, persisted_bytes
from penstock.engine.spark.parse.row_checks import ANY_BREAKS_SQL, BREAKS_COLUMN, observe_breaks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

PartitionId = tuple[str, int]
FramesByName: TypeAlias = Mapping[str, "DataFrame"]
SchemasByName: TypeAlias = Mapping[str, pa.Schema]


def count_records(
    records: "DataFrame", group_columns: Sequence[str] = (), observation: "Observation | None" = None
) -> "DataFrame":
    """Count the records of each partition by fate, with their newest event time.

    `observation` collects the checks that any record fails.
    """
    grouped = records.groupBy(*group_columns, "_topic", "_partition", "_fate")
    from pyspark.sql.functions import expr

    counted = expr("count(1) AS _counted")
    newest = expr("max(CASE WHEN _invalid IS NULL THEN _watermark_time END) AS _newest")
    if observation is None:
        accounts = grouped.agg(counted, newest)
    else:
        accounts = observe_breaks(
            grouped.agg(counted, newest, expr(f"{ANY_BREAKS_SQL} AS {BREAKS_COLUMN}")), observation
        ).drop(BREAKS_COLUMN)
    return accounts


def fetch_frames(frames: FramesByName, schemas: SchemasByName) -> dict[str, pa.Table]:
    """Run one job for all frames and fetch the rows of each."""
    union_rows = _union_frames(frames, schemas).toArrow()
    fetched = {}
    for number, name in enumerate(frames):
        frame_rows = union_rows.filter(pc.equal(union_rows.column("_frame"), number))
        columns = [
            frame_rows.column(_packed_column(number, field.name)).cast(field.type) for field in schemas[name]
        ]
        fetched[name] = pa.table(columns, schema=schemas[name])
    return fetched


def persist_frames(frames: FramesByName, schemas: SchemasByName) -> dict[str, PersistedPartials]:
    """Run one job for all frames, keep the rows of each in the executors, and summarize them.

    The size of each is the size of all: they are persisted together, and would be fetched together.
    """
    persisted = _union_frames(frames, schemas).persist()
    amounts, nbytes = _summarize_frames(persisted, len(frames)), persisted_bytes(persisted)
    return {
        name: _select_persisted_frame(number, persisted, schemas[name], amounts, nbytes)
        for number, name in enumerate(frames)
    }


def _summarize_frames(persisted: "DataFrame", frame_count: int) -> pa.Table:
    """Summarize the rows of each frame by partition and fate."""
    from pyspark.sql.functions import expr

    names = ACCOUNT_SCHEMA.names
    packed_columns = {
        name: ", ".join(quote_column(_packed_column(number, name)) for number in range(frame_count))
        for name in names
    }
    group_columns = [
        expr(f"coalesce({packed_columns[name]}) AS {name}") for name in ("_topic", "_partition", "_fate")
    ]
    sums = persisted.groupBy("_frame", *group_columns).agg(
        expr(f"sum(coalesce({packed_columns['_counted']})) AS _counted"),
        expr(f"max(coalesce({packed_columns['_newest']})) AS _newest"),
        expr("count(1) AS _rows"),
    )
    return sums.toArrow()


def _select_persisted_frame(
    number: int, persisted: "DataFrame", schema: pa.Schema, amounts: pa.Table, nbytes: int
) -> PersistedPartials:
    """Return one of the frames that are persisted together."""
    frame_amounts = amounts.filter(pc.equal(amounts.column("_frame"), number))
    included = frame_amounts.filter(frame_amounts.column("_fate").is_null())
    columns = (
        f"{quote_column(_packed_column(number, column))} AS {quote_column(column)}" for column in schema.names
    )
    frame = persisted.where(f"_frame = {number}").selectExpr(*columns)
    summary = frame_amounts.select(ACCOUNT_SCHEMA.names).cast(ACCOUNT_SCHEMA)
    return PersistedPartials(
        frame, summary, sum(included.column("_rows").to_pylist()), nbytes, schema, persisted
    )


def _union_frames(frames: FramesByName, schemas: SchemasByName) -> "DataFrame":
    packed = [
        frame.selectExpr(
            f"{number} AS _frame",
            *(
                f"{quote_column(column)} AS {quote_column(_packed_column(number, column))}"
                for column in schemas[name].names
            ),
        )
        for number, (name, frame) in enumerate(frames.items())
    ]
    return reduce(lambda union, other: union.unionByName(other, allowMissingColumns=True), packed)


def _packed_column(number: int, column: str) -> str:
    """Return the name of a frame's column in the union of all frames."""
    return f"{number}/{column}"


def add_excluded_counts(
    stage_partials: pa.Table, record_accounts: pa.Table, topics: Sequence[str], schema: pa.Schema
) -> pa.Table:
    """Add a row to the partials of a stage for each reason for which records of its topics did not reach it."""
    passed_counts: Counter[PartitionId] = Counter()
    columns = [stage_partials.column(name).to_pylist() for name in ("_topic", "_partition", "_counted")]
    for topic, partition, counted in zip(*columns, strict=True):
        passed_counts[topic, partition] += counted
    excluded_rows = []
    for account in record_accounts.to_pylist():
        if account["_topic"] in topics:
            if account["_fate"] is None:
                removed = account["_counted"] - passed_counts[account["_topic"], account["_partition"]]
                account |= {"_fate": FATE_FILTERED, "_counted": removed}
            excluded_rows.append(account)
    return pa.concat_tables([stage_partials, pa.Table.from_pylist(excluded_rows, schema=schema)])
