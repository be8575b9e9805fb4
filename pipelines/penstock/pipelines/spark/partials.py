"""The one Spark job of a batch: records in, partials per key and window out, small enough to fetch.

Each row of the answer is about one partition of the topic, so that the same pass also says how far each
partition came: its records, those that are no good, and its newest event time. Rows about records that are no
good have no window.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.pipelines.batch.reading import QUARANTINED
from penstock.pipelines.fold.order.slots import ELEMENT, MATCHED, punctuation
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.predicates import predicate_sql, quoted
from penstock.pipelines.plan.source import WatermarkRule
from penstock.pipelines.plan.windows import Sessions
from penstock.pipelines.spark.assignment import window_bounds, window_starts
from penstock.pipelines.spark.checks import ANY, BREAKS, watched
from penstock.pipelines.spark.finishing import finished
from penstock.pipelines.spark.inputs import Sources, by_topic
from penstock.pipelines.spark.multiplying import FIRST_ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


def guarded(records: "DataFrame", sources: Sources, clock: int | str) -> "DataFrame":
    """Judge event times that are too far ahead of the batch clock, and say what is set aside, in `_aside`.

    Such a record is no good, or it is accepted and does not move the watermark: `_moving` is the event time of
    those that do. Each input has its own rule. The clock may be SQL that says it of each record.
    """
    told = f"{clock}L AS _clock" if isinstance(clock, int) else f"{clock} AS _clock"
    aside = f"CASE WHEN _invalid IS NOT NULL THEN '{QUARANTINED}' END AS _aside"
    if not go_by_the_clock(sources):
        return records.selectExpr("*", told, "_time AS _moving", aside)
    return _ahead(records.selectExpr("*", told), sources).selectExpr("*", aside)


def go_by_the_clock(sources: Sources) -> bool:
    """Whether the batch clock decides about any record of these inputs."""
    return any(source.watermark.max_ahead is not None for source in sources)


def _ahead(records: "DataFrame", sources: Sources) -> "DataFrame":
    far = by_topic(sources, "_topic", lambda _, source: _too_far(source.watermark))
    refused = by_topic(sources, "_topic", lambda _, s: str(s.watermark.ahead == "quarantine"))
    others = [quoted(name) for name in records.columns if name != "_invalid"]
    reason = f"CASE WHEN _invalid IS NULL AND {far} AND {refused} THEN 'ahead_of_clock' ELSE _invalid END"
    moving = f"CASE WHEN NOT {far} THEN _time END"
    return records.selectExpr(*others, f"{moving} AS _moving", f"{reason} AS _invalid")


def _too_far(rule: WatermarkRule) -> str:
    return "false" if rule.max_ahead is None else f"(_time > _clock + {rule.max_ahead}L)"


def windowed(records: "DataFrame", stage: ReadyStage) -> "DataFrame":
    """Give each good record its windows, a row for each; `_last` marks one row of every record."""
    time = "_clock" if stage.by_the_clock else "_time"
    starts = window_starts(stage.plan.window, time)
    if starts is None:
        start, end = window_bounds(stage.plan.window, time)
        return records.selectExpr(
            "*", _good(start, "window_start"), _good(end, "window_end"), "true AS _last"
        )
    placed = records.selectExpr("*", f"CASE WHEN _aside IS NULL THEN {starts} END AS _starts")
    each = placed.selectExpr("*", "posexplode_outer(_starts) AS (_at, window_start)")
    _, end = window_bounds(stage.plan.window, "window_start")
    return each.selectExpr("*", f"{end} AS window_end", "_at IS NULL OR _at = size(_starts) - 1 AS _last")


def partials(
    records: "DataFrame",
    stage: ReadyStage,
    beside: Sequence[str] = (),
    seen: "Observation | None" = None,
    *,
    breaks: bool = False,
) -> "DataFrame":
    """Pre-aggregate records that were guarded. The columns are those of a reading's partials, and those `beside`.

    For order windows nothing can be aggregated before the order is known: the records come as they are.
    `seen` sees which checks any of the records breaks; with `breaks` each row has what its own records break.
    """
    from pyspark.sql.functions import expr

    if stage.in_order:
        return _one_by_one(records if seen is None else watched(records, seen), stage, beside)
    if stage.one_sided:
        records = records.selectExpr("*", *(each.sql() for each in stage.one_sided))
    keys = [expr(_good(quoted(field.name), quoted(field.name))) for field in stage.key]
    bounds = ["window_start", "window_end"]
    aside = expr("_aside AS _set_aside")
    grouped = windowed(records, stage).groupBy(*beside, "_topic", "_partition", aside, *keys, *bounds)
    measures = {
        "_counted": f"count_if(_last AND {FIRST_ROW})" if FIRST_ROW in records.columns else "count_if(_last)",
        "_newest": "max(CASE WHEN _invalid IS NULL THEN _moving END)",
        "elements": "count(1)",
        **{f"matches_{i}": f"count_if({predicate_sql(p)})" for i, p in enumerate(stage.predicates)},
        # What is set aside is only counted: two values that no check lets pass may be too great for a sum.
        **{name: f"CASE WHEN _aside IS NULL THEN {sql} END" for name, sql in _values(stage).items()},
        **({} if seen is None and not breaks else {BREAKS: ANY}),
    }
    told = grouped.agg(*(expr(f"{sql} AS {quoted(name)}") for name, sql in measures.items()))
    return finished(told if seen is None else watched(told, seen).drop(BREAKS), stage)


def _one_by_one(records: "DataFrame", stage: ReadyStage, beside: Sequence[str]) -> "DataFrame":
    condition = punctuation(stage.plan.window)
    matched = (
        [] if condition is None else [_good(f"coalesce({predicate_sql(condition)}, false)", MATCHED.name)]
    )
    columns = [_good(quoted(field.name), quoted(field.name)) for field in (*stage.key, *stage.fields)]
    return records.selectExpr(
        *beside,
        "_topic",
        "_partition",
        "_aside AS _set_aside",
        f"CAST({FIRST_ROW} AS BIGINT) AS _counted" if FIRST_ROW in records.columns else "1L AS _counted",
        "CASE WHEN _invalid IS NULL THEN _moving END AS _newest",
        *(_good(field.name, field.name) for field in ELEMENT),
        *matched,
        *columns,
    )


def _values(stage: ReadyStage) -> dict[str, str]:
    """What groups are asked for, and for sessions the bounds that the records of a piece reach."""
    parts = {part.name: part.sql for part in stage.parts}
    match stage.plan.window:
        case Sessions(gap):
            return {"piece_start": "min(_time)", "piece_end": f"max(_time) + {gap}", **parts}
        case _:
            return parts


def _good(sql: str, name: str) -> str:
    """A column that only records have that go on: the others must not be told apart by what was read of them."""
    return f"CASE WHEN _aside IS NULL THEN {sql} END AS {name}"
