"""Checks of nothing but a stage's key are asked of groups of records, which have one key, not of each record.

A group whose key breaks one is no good as a whole: its records are counted as they would be one by one, set aside,
without a window, and of no weight for the watermark.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.engine.batch.batch_input import FATE_QUARANTINED
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.plan.predicates import quote_column
from penstock.engine.spark.parse.input_columns import Sources, sql_by_topic
from penstock.engine.spark.parse.row_checks import (
    BREAKS_COLUMN,
    CheckBit,
    assign_check_bits,
    break_bits_sql,
    check_mask_sql,
    select_quarantining,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY_BREAKS_COLUMN = "_by_key"


def find_key_checks(records: "DataFrame", stage: CompiledStage, sources: Sources) -> tuple[CheckBit, ...]:
    """Return the checks that ask for no field but the key's; none where a stage takes records one by one."""
    if stage.is_ordered:
        return ()
    key_fields = {field.name for field in stage.key}
    return tuple(
        check_bit
        for check_bit in assign_check_bits(sources)
        if _referenced_fields(records, check_bit) <= key_fields
    )


def apply_key_checks(
    partial_rows: "DataFrame", key_checks: Collection[CheckBit], stage: CompiledStage, sources: Sources
) -> "DataFrame":
    """Partials with what records break in `BREAKS`, as they are after these checks as well."""
    if not key_checks:
        return partial_rows
    broken_sql = sql_by_topic(sources, "_topic", lambda _, source: break_bits_sql(key_checks, source))
    mask = sql_by_topic(
        sources, "_topic", lambda _, source: check_mask_sql(select_quarantining(key_checks), source)
    )
    is_broken = f"({KEY_BREAKS_COLUMN} & {mask}) != 0"
    cleared_columns = ("_newest", "window_start", "window_end", *(field.name for field in stage.key))
    columns = {
        **{name: quote_column(name) for name in partial_rows.columns},
        **{name: f"CASE WHEN NOT ({is_broken}) THEN {quote_column(name)} END" for name in cleared_columns},
        "_fate": f"CASE WHEN {is_broken} THEN '{FATE_QUARANTINED}' ELSE _fate END",
        BREAKS_COLUMN: f"{BREAKS_COLUMN} | {KEY_BREAKS_COLUMN}",
    }
    with_key_breaks = partial_rows.selectExpr(
        "*", f"CASE WHEN _fate IS NULL THEN {broken_sql} ELSE 0L END AS {KEY_BREAKS_COLUMN}"
    )
    return with_key_breaks.selectExpr(*(f"{sql} AS {quote_column(name)}" for name, sql in columns.items()))


def _referenced_fields(records: "DataFrame", check_bit: CheckBit) -> set[str]:
    """The fields of records that a check asks for."""
    check_frame = records.selectExpr(check_bit.check.violation_sql)
    # PySpark has no word for what an expression refers to.
    fields = check_frame._jdf.queryExecution().analyzed().references().iterator()  # noqa: SLF001
    field_names = set()
    while fields.hasNext():
        field_names.add(fields.next().name())
    return field_names
