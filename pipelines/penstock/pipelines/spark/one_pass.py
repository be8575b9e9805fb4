"""Several first stages in one job: each record is read and parsed once, whatever goes by it.

What each stage makes of the records is put into columns of its own, and all of it is fetched together, with an
account of the records themselves; or kept together, where it may be too much to be fetched.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.batch.reading import ACCOUNT_COLUMNS, FILTERED
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.spark.checks import ANY, BREAKS, watched
from penstock.pipelines.spark.spreading import WeighedPartials, bytes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

Place = tuple[str, int]
Frames: TypeAlias = Mapping[str, "DataFrame"]
Schemas: TypeAlias = Mapping[str, pa.Schema]


def accounted(
    records: "DataFrame", beside: Sequence[str] = (), seen: "Observation | None" = None
) -> "DataFrame":
    """How many records there are of each partition, by what is set aside of them, and how far they came.

    `seen` sees which checks any of them breaks.
    """
    grouped = records.groupBy(*beside, "_topic", "_partition", "_aside")
    from pyspark.sql.functions import expr

    counted = expr("count(1) AS _counted")
    newest = expr("max(CASE WHEN _invalid IS NULL THEN _moving END) AS _newest")
    if seen is None:
        told = grouped.agg(counted, newest)
    else:
        told = watched(grouped.agg(counted, newest, expr(f"{ANY} AS {BREAKS}")), seen).drop(BREAKS)
    return told.withColumnRenamed("_aside", "_set_aside")


def fetched_together(frames: Frames, schemas: Schemas) -> dict[str, pa.Table]:
    """Run one job for all frames, and fetch what each of them gives."""
    told = _side_by_side(frames, schemas).toArrow()
    fetched = {}
    for number, name in enumerate(frames):
        ours = told.filter(pc.equal(told.column("_frame"), number))
        columns = [ours.column(_packed(number, field.name)).cast(field.type) for field in schemas[name]]
        fetched[name] = pa.table(columns, schema=schemas[name])
    return fetched


def weighed_together(frames: Frames, schemas: Schemas) -> dict[str, WeighedPartials]:
    """Run one job for all frames, keep what each of them gives, and ask what it amounts to.

    The bytes of each are those of all of them: they are kept together, and fetched they would be held together.
    """
    kept = _side_by_side(frames, schemas).persist()
    amounts, nbytes = _amounts(kept, len(frames)), bytes_of(kept)
    return {
        name: _weighed(number, kept, schemas[name], amounts, nbytes) for number, name in enumerate(frames)
    }


def _amounts(kept: "DataFrame", frames: int) -> pa.Table:
    """What the rows of each frame amount to, by partition and by what is set aside."""
    from pyspark.sql.functions import expr

    names = ACCOUNT_COLUMNS.names
    of_any = {name: ", ".join(quoted(_packed(number, name)) for number in range(frames)) for name in names}
    by = [expr(f"coalesce({of_any[name]}) AS {name}") for name in ("_topic", "_partition", "_set_aside")]
    sums = kept.groupBy("_frame", *by).agg(
        expr(f"sum(coalesce({of_any['_counted']})) AS _counted"),
        expr(f"max(coalesce({of_any['_newest']})) AS _newest"),
        expr("count(1) AS _rows"),
    )
    return sums.toArrow()


def _weighed(
    number: int, kept: "DataFrame", schema: pa.Schema, amounts: pa.Table, nbytes: int
) -> WeighedPartials:
    """One of the frames that are kept together."""
    ours = amounts.filter(pc.equal(amounts.column("_frame"), number))
    good = ours.filter(ours.column("_set_aside").is_null())
    columns = (f"{quoted(_packed(number, column))} AS {quoted(column)}" for column in schema.names)
    frame = kept.where(f"_frame = {number}").selectExpr(*columns)
    summary = ours.select(ACCOUNT_COLUMNS.names).cast(ACCOUNT_COLUMNS)
    return WeighedPartials(frame, summary, sum(good.column("_rows").to_pylist()), nbytes, schema, kept)


def _side_by_side(frames: Frames, schemas: Schemas) -> "DataFrame":
    packed = [
        frame.selectExpr(
            f"{number} AS _frame",
            *(f"{quoted(column)} AS {quoted(_packed(number, column))}" for column in schemas[name].names),
        )
        for number, (name, frame) in enumerate(frames.items())
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), packed)


def _packed(number: int, column: str) -> str:
    """The name of a frame's column among those of all frames."""
    return f"{number}/{column}"


def with_the_rest(passed: pa.Table, records: pa.Table, topics: Sequence[str], schema: pa.Schema) -> pa.Table:
    """The partials of one stage, and a line for each thing that kept records of its topics from them."""
    reached: Counter[Place] = Counter()
    columns = [passed.column(name).to_pylist() for name in ("_topic", "_partition", "_counted")]
    for topic, partition, counted in zip(*columns, strict=True):
        reached[topic, partition] += counted
    rest = []
    for line in records.to_pylist():
        if line["_topic"] in topics:
            if line["_set_aside"] is None:
                removed = line["_counted"] - reached[line["_topic"], line["_partition"]]
                line |= {"_set_aside": FILTERED, "_counted": removed}
            rest.append(line)
    return pa.concat_tables([passed, pa.Table.from_pylist(rest, schema=schema)])
