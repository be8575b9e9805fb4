"""Checks of single records, in the pass that parses them: what each breaks, and how many break what.

What a record breaks is one number, `_breaks`, with a bit for each check of its input. It is worked out once, and
says whether the record is no good. Which checks any record breaks is known of the same pass, from the groups into
which records are counted wherever there are such; only where some are broken, a second job counts them.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.reading import CHECKED
from penstock.pipelines.errors import CheckFailedError
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.plan.source import RowCheck, Source
from penstock.pipelines.spark.inputs import Sources, apart, by_topic, disputed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

BREAKS = "_breaks"
ANY = f"bit_or({BREAKS})"
"""What any of several records breaks."""
SEEN = "breaks"
REASON = "check:"
"""With what the reason begins for which a record is set aside by a check; its name follows."""


class Placed(NamedTuple):
    """A check, the topic whose records it is of, and its bit."""

    topic: str
    bit: int
    check: RowCheck


def placed(sources: Sources) -> list[Placed]:
    """Every check of every input."""
    return [
        Placed(topic_of(source), bit, check) for source in sources for bit, check in enumerate(source.checks)
    ]


def refusing(asked: Iterable[Placed]) -> list[Placed]:
    """Those of some checks for which records are set aside."""
    return [one for one in asked if one.check.action == "quarantine"]


def checked(records: "DataFrame", sources: Sources, later: Collection[Placed] = ()) -> "DataFrame":
    """Records that were judged, judged by their checks as well; as they are where there are none.

    Those that are asked `later` are left out.
    """
    if not placed(sources):
        return records
    asked = [one for one in placed(sources) if one not in later]
    if disputed(sources):
        broken = by_topic(sources, "_topic", lambda number, _: f"{BREAKS}_{number}")
        known = _apart(records, sources)
    else:
        broken = by_topic(sources, "_topic", lambda _, source: bits_of(asked, source))
        known = records
    with_bits = known.selectExpr("*", f"CASE WHEN _invalid IS NULL THEN {broken} ELSE 0L END AS {BREAKS}")
    others = [quoted(name) for name in records.columns if name != "_invalid"]
    reason = by_topic(sources, "_topic", lambda _, source: _reason(asked, source))
    return with_bits.selectExpr(*others, BREAKS, f"coalesce(_invalid, {reason}) AS _invalid")


def _apart(records: "DataFrame", sources: Sources) -> "DataFrame":
    """Records with what they would break of each input's checks, whose fields are those of that input."""
    every = disputed(sources)
    for number, source in enumerate(sources):
        owned = [column.name for column in source.columns if column.name in every]
        fields = [f"{quoted(apart(number, name))} AS {quoted(name)}" for name in owned]
        named = records.selectExpr("*", *fields)
        broken = bits_of(placed(sources), source)
        records = named.selectExpr("*", f"{broken} AS {BREAKS}_{number}").drop(*owned)
    return records


def watch(sources: Sources) -> "Observation | None":
    """What is to see which checks any record breaks; None where there are none."""
    from pyspark.sql import Observation

    return Observation() if placed(sources) else None


def watched(rows: "DataFrame", seen: "Observation") -> "DataFrame":
    """Records, or groups of them that have `_breaks` of all, of which it is seen which checks any of them breaks.

    Spark writes each row that it watches to memory, and whatever precedes with all its columns: so groups are
    watched where there are any, for they are few.
    """
    from pyspark.sql.functions import expr

    return rows.observe(seen, expr(f"{ANY} AS {SEEN}"))


def seen_by(one: "Observation | None") -> int | None:
    """What was seen once the records were read."""
    return None if one is None else one.get[SEEN]


def told(broken: int | None, records: "Callable[[], DataFrame]", sources: Sources) -> pa.Table:
    """How many records break each check, as `CHECKED` has it: by a job of its own, where any record breaks any.

    `broken` are the bits of what any of them breaks.
    """
    if not broken:
        return CHECKED.empty_table()
    from pyspark.sql.functions import expr

    bits = range(max(len(source.checks) for source in sources))
    measures = [expr(f"count_if({BREAKS} & {1 << bit}L != 0) AS bit_{bit}") for bit in bits]
    counts = {
        row["_topic"]: row
        for row in records().where(f"{BREAKS} != 0").groupBy("_topic").agg(*measures).collect()
    }
    rows = [
        {
            "topic": one.topic,
            "check": one.check.name,
            "action": one.check.action,
            "records": counts[one.topic][f"bit_{one.bit}"],
        }
        for one in placed(sources)
        if one.topic in counts and counts[one.topic][f"bit_{one.bit}"]
    ]
    return pa.Table.from_pylist(rows, schema=CHECKED)


def refuse_stopping(broken: pa.Table, records: "Callable[[], DataFrame]", sources: Sources) -> None:
    """Raise CheckFailedError, with the first record, where a check that stops the stream is broken."""
    stopping = {
        (row["topic"], row["check"]): row["records"] for row in broken.to_pylist() if row["action"] == "stop"
    }
    for one in placed(sources):
        count = stopping.get((one.topic, one.check.name))
        if count:
            rows = records().where(_holds_for(one)).select("_partition", "_offset")
            partition, offset = rows.orderBy("_partition", "_offset").limit(1).collect()[0]
            raise CheckFailedError(
                one.check.name, one.topic, count, f"{one.topic}/{partition} offset {offset}"
            )


def bits_of(asked: Iterable[Placed], source: Source) -> str:
    """SQL for what a record of an input breaks of these checks."""
    bits = [f"IF({one.check.broken_when}, {1 << one.bit}L, 0L)" for one in _of(asked, source)]
    return " | ".join(bits) if bits else "0L"


def mask_of(asked: Iterable[Placed], source: Source) -> str:
    """SQL for the bits of these checks of an input."""
    return f"{sum(1 << one.bit for one in _of(asked, source))}L"


def _reason(asked: Iterable[Placed], source: Source) -> str | None:
    """The first check, in the order of their declaration, for which a record is set aside."""
    cases = [
        f"WHEN {BREAKS} & {1 << one.bit}L != 0 THEN '{REASON}{one.check.name}'"
        for one in refusing(_of(asked, source))
    ]
    return f"CASE WHEN {BREAKS} = 0 THEN NULL {' '.join(cases)} END" if cases else None


def _of(asked: Iterable[Placed], source: Source) -> list[Placed]:
    return [one for one in asked if one.topic == topic_of(source)]


def _holds_for(one: Placed) -> str:
    return f"{BREAKS} & {1 << one.bit}L != 0 AND _topic = '{one.topic}'"
