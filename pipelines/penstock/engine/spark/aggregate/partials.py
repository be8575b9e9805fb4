"""Aggregates the records of a batch into partials for each key and window, small enough to fetch.

Each row belongs to one partition of a topic. So the same pass also yields the number of records of each partition,
its invalid records, and its newest event time. Rows for invalid records have no window.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.engine.definition.predicates import predicate_sql, quote_column
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.ordered.state_schema import ELEMENT_FIELDS, MATCHED_FIELD
from penstock.engine.spark.aggregate.arrow_finish import finish_groups
from penstock.engine.spark.parse.row_checks import ANY_BREAKS_SQL, BREAKS_COLUMN, observe_breaks
from penstock.engine.spark.transform.row_multiplication import FIRST_ROW_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


def assign_windows(records: "DataFrame", stage: CompiledStage) -> "DataFrame":
    """Return a row for each window of each included record; `_last` marks one row of every record."""
    time = "_clock" if stage.uses_processing_time else "_time"
    window = stage.plan.window
    starts = window.starts_sql(time)
    if starts is None:
        start, end = window.bounds_sql(time)
        return records.selectExpr(
            "*", _if_included_sql(start, "window_start"), _if_included_sql(end, "window_end"), "true AS _last"
        )
    with_starts = records.selectExpr("*", f"CASE WHEN _fate IS NULL THEN {starts} END AS _starts")
    exploded = with_starts.selectExpr("*", "posexplode_outer(_starts) AS (_at, window_start)")
    _, end = window.bounds_sql("window_start")
    return exploded.selectExpr("*", f"{end} AS window_end", "_at IS NULL OR _at = size(_starts) - 1 AS _last")


def aggregate_partials(
    records: "DataFrame",
    stage: CompiledStage,
    group_columns: Sequence[str] = (),
    observation: "Observation | None" = None,
    *,
    with_breaks: bool = False,
) -> "DataFrame":
    """Aggregate checked records into partials, within `group_columns` if there are any.

    A stage with order windows gets single records, as nothing can be aggregated before the order is known.
    `observation` collects the checks that any record fails; `with_breaks` adds a column with those of each group.
    """
    from pyspark.sql.functions import expr

    if stage.is_ordered:
        return _select_single_records(
            records if observation is None else observe_breaks(records, observation), stage, group_columns
        )
    if stage.restricted_columns:
        records = records.selectExpr("*", *(column.to_sql() for column in stage.restricted_columns))
    keys = [expr(_if_included_sql(quote_column(field.name), quote_column(field.name))) for field in stage.key]
    bounds = ["window_start", "window_end"]
    grouped = assign_windows(records, stage).groupBy(
        *group_columns, "_topic", "_partition", "_fate", *keys, *bounds
    )
    measures = {
        "_counted": f"count_if(_last AND {FIRST_ROW_COLUMN})"
        if FIRST_ROW_COLUMN in records.columns
        else "count_if(_last)",
        "_newest": "max(CASE WHEN _invalid IS NULL THEN _watermark_time END)",
        "elements": "count(1)",
        **{
            f"matches_{index}": f"count_if({predicate_sql(predicate)})"
            for index, predicate in enumerate(stage.predicates)
        },
        # Excluded records are only counted: their values failed the checks and may overflow a sum.
        **{name: f"CASE WHEN _fate IS NULL THEN {sql} END" for name, sql in _part_measures(stage).items()},
        **({} if observation is None and not with_breaks else {BREAKS_COLUMN: ANY_BREAKS_SQL}),
    }
    partial_rows = grouped.agg(*(expr(f"{sql} AS {quote_column(name)}") for name, sql in measures.items()))
    return finish_groups(
        partial_rows
        if observation is None
        else observe_breaks(partial_rows, observation).drop(BREAKS_COLUMN),
        stage,
    )


def _select_single_records(
    records: "DataFrame", stage: CompiledStage, group_columns: Sequence[str]
) -> "DataFrame":
    condition = stage.plan.window.record_condition
    match_columns = (
        []
        if condition is None
        else [_if_included_sql(f"coalesce({predicate_sql(condition)}, false)", MATCHED_FIELD.name)]
    )
    columns = [
        _if_included_sql(quote_column(field.name), quote_column(field.name))
        for field in (*stage.key, *stage.record_fields)
    ]
    return records.selectExpr(
        *group_columns,
        "_topic",
        "_partition",
        "_fate",
        f"CAST({FIRST_ROW_COLUMN} AS BIGINT) AS _counted"
        if FIRST_ROW_COLUMN in records.columns
        else "1L AS _counted",
        "CASE WHEN _invalid IS NULL THEN _watermark_time END AS _newest",
        *(_if_included_sql(field.name, field.name) for field in ELEMENT_FIELDS),
        *match_columns,
        *columns,
    )


def _part_measures(stage: CompiledStage) -> dict[str, str]:
    """Return the SQL of each part, and for merging windows the bounds of the records in a piece."""
    parts = {part.name: part.sql for part in stage.parts}
    merge_gap = stage.plan.window.merge_gap
    if merge_gap is None:
        return parts
    return {"piece_start": "min(_time)", "piece_end": f"max(_time) + {merge_gap}", **parts}


def _if_included_sql(sql: str, name: str) -> str:
    """Return SQL that is null for excluded records, so that their values do not split groups."""
    return f"CASE WHEN _fate IS NULL THEN {sql} END AS {name}"
