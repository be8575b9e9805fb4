"""Runs checks of single records in the pass that parses them.

The failed checks of a record are one number, `_breaks`, with a bit for each check of its input. It decides whether
the record is invalid. The same pass yields which checks any record fails, from groups of records if there are
groups. Only if a check fails, a second job counts the records that fail it.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from penstock.engine.batch.batch_input import CHECK_COUNTS_SCHEMA
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.definition.predicates import quote_column
from penstock.engine.errors import CheckFailedError
from penstock.engine.plan.sources import PlanSource, RowCheck
from penstock.engine.spark.parse.input_columns import (
    Sources,
    find_conflicting_fields,
    input_field_column,
    sql_by_topic,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

BREAKS_COLUMN = "_breaks"
ANY_BREAKS_SQL = f"bit_or({BREAKS_COLUMN})"
"""The checks that any record of a group fails."""
OBSERVED_BREAKS = "breaks"
CHECK_REASON_PREFIX = "check:"
"""The start of the reason for which a check quarantines a record; the name of the check follows."""


class CheckBit(NamedTuple):
    """A check, the topic of its records, and its bit."""

    topic: str
    bit: int
    check: RowCheck


def assign_check_bits(sources: Sources) -> list[CheckBit]:
    """Return every check of every input."""
    return [
        CheckBit(topic_of(source), bit, check)
        for source in sources
        for bit, check in enumerate(source.checks)
    ]


def select_quarantining(check_bits: Iterable[CheckBit]) -> list[CheckBit]:
    """Return the checks that quarantine records."""
    return [check_bit for check_bit in check_bits if check_bit.check.action == "quarantine"]


def apply_row_checks(
    records: "DataFrame", sources: Sources, deferred_checks: Collection[CheckBit] = ()
) -> "DataFrame":
    """Run the checks of all inputs except `deferred_checks`; without checks, return the records unchanged."""
    if not assign_check_bits(sources):
        return records
    current_checks = [
        check_bit for check_bit in assign_check_bits(sources) if check_bit not in deferred_checks
    ]
    if find_conflicting_fields(sources):
        broken_sql = sql_by_topic(sources, "_topic", lambda number, _: f"{BREAKS_COLUMN}_{number}")
        candidates = _add_bits_per_input(records, sources)
    else:
        broken_sql = sql_by_topic(sources, "_topic", lambda _, source: break_bits_sql(current_checks, source))
        candidates = records
    with_bits = candidates.selectExpr(
        "*", f"CASE WHEN _invalid IS NULL THEN {broken_sql} ELSE 0L END AS {BREAKS_COLUMN}"
    )
    columns = [quote_column(name) for name in records.columns if name != "_invalid"]
    reason = sql_by_topic(sources, "_topic", lambda _, source: _quarantine_reason_sql(current_checks, source))
    return with_bits.selectExpr(*columns, BREAKS_COLUMN, f"coalesce(_invalid, {reason}) AS _invalid")


def _add_bits_per_input(records: "DataFrame", sources: Sources) -> "DataFrame":
    """Add a column with the failed checks of each input, computed on the fields of that input."""
    conflicting = find_conflicting_fields(sources)
    for number, source in enumerate(sources):
        own_conflicting = [column.name for column in source.columns if column.name in conflicting]
        fields = [
            f"{quote_column(input_field_column(number, name))} AS {quote_column(name)}"
            for name in own_conflicting
        ]
        renamed = records.selectExpr("*", *fields)
        broken_sql = break_bits_sql(assign_check_bits(sources), source)
        records = renamed.selectExpr("*", f"{broken_sql} AS {BREAKS_COLUMN}_{number}").drop(*own_conflicting)
    return records


def create_check_observation(sources: Sources) -> "Observation | None":
    """Create the observation of failed checks; None if no input has checks."""
    from pyspark.sql import Observation

    return Observation() if assign_check_bits(sources) else None


def observe_breaks(rows: "DataFrame", observation: "Observation") -> "DataFrame":
    """Observe which checks any of these records, or groups of records, fails.

    Spark copies each observed row with all its columns, so observe groups if there are any: they are few.
    """
    from pyspark.sql.functions import expr

    return rows.observe(observation, expr(f"{ANY_BREAKS_SQL} AS {OBSERVED_BREAKS}"))


def read_observed_breaks(observation: "Observation | None") -> int | None:
    """Return the observed checks, after the records were read."""
    return None if observation is None else observation.get[OBSERVED_BREAKS]


def count_broken_checks(
    broken_bits: int | None, records: "Callable[[], DataFrame]", sources: Sources
) -> pa.Table:
    """Count the records that fail each check, in a separate job if any record fails any check.

    `broken_bits` are the checks that any record fails. The columns are those of CHECK_COUNTS_SCHEMA.
    """
    if not broken_bits:
        return CHECK_COUNTS_SCHEMA.empty_table()
    from pyspark.sql.functions import expr

    bits = range(max(len(source.checks) for source in sources))
    measures = [expr(f"count_if({BREAKS_COLUMN} & {1 << bit}L != 0) AS bit_{bit}") for bit in bits]
    counts = {
        row["_topic"]: row
        for row in records().where(f"{BREAKS_COLUMN} != 0").groupBy("_topic").agg(*measures).collect()
    }
    rows = [
        {
            "topic": check_bit.topic,
            "check": check_bit.check.name,
            "action": check_bit.check.action,
            "records": counts[check_bit.topic][f"bit_{check_bit.bit}"],
        }
        for check_bit in assign_check_bits(sources)
        if check_bit.topic in counts and counts[check_bit.topic][f"bit_{check_bit.bit}"]
    ]
    return pa.Table.from_pylist(rows, schema=CHECK_COUNTS_SCHEMA)


def raise_if_stopping(broken: pa.Table, records: "Callable[[], DataFrame]", sources: Sources) -> None:
    """Raise CheckFailedError with the first record that fails a check which stops the stream."""
    stopping = {
        (row["topic"], row["check"]): row["records"] for row in broken.to_pylist() if row["action"] == "stop"
    }
    for check_bit in assign_check_bits(sources):
        count = stopping.get((check_bit.topic, check_bit.check.name))
        if count:
            rows = records().where(_is_broken_sql(check_bit)).select("_partition", "_offset")
            partition, offset = rows.orderBy("_partition", "_offset").limit(1).collect()[0]
            raise CheckFailedError(
                check_bit.check.name, check_bit.topic, count, f"{check_bit.topic}/{partition} offset {offset}"
            )


def break_bits_sql(check_bits: Iterable[CheckBit], source: PlanSource) -> str:
    """Return SQL for the bits of these checks that a record of an input fails."""
    bits = [
        f"IF({check_bit.check.violation_sql}, {1 << check_bit.bit}L, 0L)"
        for check_bit in _select_source_checks(check_bits, source)
    ]
    return " | ".join(bits) if bits else "0L"


def check_mask_sql(check_bits: Iterable[CheckBit], source: PlanSource) -> str:
    """Return SQL for the bits of these checks of an input."""
    return f"{sum(1 << check_bit.bit for check_bit in _select_source_checks(check_bits, source))}L"


def _quarantine_reason_sql(check_bits: Iterable[CheckBit], source: PlanSource) -> str | None:
    """Return SQL for the first failed check, in order of declaration, that quarantines a record."""
    cases = [
        f"WHEN {BREAKS_COLUMN} & {1 << check_bit.bit}L != 0 THEN '{CHECK_REASON_PREFIX}{check_bit.check.name}'"
        for check_bit in select_quarantining(_select_source_checks(check_bits, source))
    ]
    return f"CASE WHEN {BREAKS_COLUMN} = 0 THEN NULL {' '.join(cases)} END" if cases else None


def _select_source_checks(check_bits: Iterable[CheckBit], source: PlanSource) -> list[CheckBit]:
    return [check_bit for check_bit in check_bits if check_bit.topic == topic_of(source)]


def _is_broken_sql(check_bit: CheckBit) -> str:
    return f"{BREAKS_COLUMN} & {1 << check_bit.bit}L != 0 AND _topic = '{check_bit.topic}'"
