"""Runs checks that read only a stage's key once for each group of records, not for each record.

When the key of a group fails such a check, all its records are invalid. They are counted as quarantined, have no
window, and do not advance the watermark, exactly as if each record had been checked.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.engine.batch.batch_input import FATE_QUARANTINED
from penstock.engine.definition.predicates import quote_column
from penstock.engine.operators.compiled_stage import CompiledStage
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
    """Return the checks that read only fields of the key; none for a stage that takes single records."""
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
    """Apply these checks to partials that have the column of failed checks."""
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
    """Return the fields that a check reads."""
    check_frame = records.selectExpr(check_bit.check.violation_sql)
    # PySpark has no public API for the references of an expression.
    fields = check_frame._jdf.queryExecution().analyzed().references().iterator()  # noqa: SLF001
    field_names = set()
    while fields.hasNext():
        field_names.add(fields.next().name())
    return field_names
