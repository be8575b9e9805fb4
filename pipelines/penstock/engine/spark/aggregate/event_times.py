"""Judges event times by the batch time: a record further ahead than the max future skew of its input.

A plan with the batch time in it cannot be reused for the next batch. So the cached plan of a stream judges no event
time. Its partials hold the newest one of each partition: only if that is too far ahead, the batch runs again with
a plan of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.duration import UNITS_MS
from penstock.core.settings import DurationMs
from penstock.engine.batch.batch_input import FATE_FILTERED, FATE_QUARANTINED
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.definition.predicates import quote_column, sql_literal
from penstock.engine.plan.sources import PlanSource, WatermarkStrategy
from penstock.engine.spark.parse.input_columns import Sources, sql_by_topic
from penstock.engine.spark.parse.record_parser import IGNORED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FUTURE_EVENT_TIME = "future_event_time"
"""The start of the reason of records that are too far ahead; the field and by how much follow."""

DAY_MS, HOUR_MS, MINUTE_MS = (UNITS_MS[unit] for unit in ("d", "h", "m"))


def judge_event_times(records: "DataFrame", sources: Sources, clock: int | str) -> "DataFrame":
    """Check event times against the batch time, and add `_fate`: null, or why a record is excluded.

    An event time too far in the future makes a record invalid, or the record is accepted but does not advance the
    watermark. Each input has its own rule. `_watermark_time` holds the event time of records that advance the
    watermark. The clock is a number, or an SQL expression over the record.
    """
    clock_column = f"{clock}L AS _clock" if isinstance(clock, int) else f"{clock} AS _clock"
    fate_column = (
        f"CASE WHEN _invalid = '{IGNORED}' THEN '{FATE_FILTERED}' "
        f"WHEN _invalid IS NOT NULL THEN '{FATE_QUARANTINED}' END AS _fate"
    )
    if not has_clock_rules(sources):
        return records.selectExpr("*", clock_column, "_time AS _watermark_time", fate_column)
    return _judge_future_times(records.selectExpr("*", clock_column), sources).selectExpr("*", fate_column)


def judge_no_event_times(records: "DataFrame", sources: Sources) -> "DataFrame":
    """Add the columns of `judge_event_times` as if no event time were too far ahead."""
    return judge_event_times(records, [_without_limit(source) for source in sources], clock=0)


def has_clock_rules(sources: Sources) -> bool:
    """Whether any of these inputs checks event times against the batch time."""
    return any(source.watermark.max_future_skew is not None for source in sources)


def has_future_times(partials: pa.Table, sources: Sequence[PlanSource], clock: int) -> bool:
    """Whether the newest event time of any partition is too far ahead of the batch time."""
    for source in sources:
        limit = source.watermark.max_future_skew
        if limit is not None:
            is_of_topic = pc.equal(partials.column("_topic"), topic_of(source))
            newest = pc.max(partials.column("_newest").filter(is_of_topic)).as_py()
            if newest is not None and newest > clock + limit:
                return True
    return False


def _judge_future_times(records: "DataFrame", sources: Sources) -> "DataFrame":
    is_ahead = sql_by_topic(sources, "_topic", lambda _, source: _is_ahead_sql(source.watermark))
    is_quarantined = sql_by_topic(
        sources, "_topic", lambda _, s: str(s.watermark.future_records == "quarantine")
    )
    columns = [quote_column(name) for name in records.columns if name != "_invalid"]
    is_refused = f"_invalid IS NULL AND {is_ahead} AND {is_quarantined}"
    refusal = sql_by_topic(sources, "_topic", lambda _, source: _refusal_sql(source))
    reason = f"CASE WHEN {is_refused} THEN {refusal} ELSE _invalid END"
    moving = f"CASE WHEN NOT {is_ahead} THEN _time END"
    return records.selectExpr(*columns, f"{moving} AS _watermark_time", f"{reason} AS _invalid")


def _is_ahead_sql(rule: WatermarkStrategy) -> str:
    return "false" if rule.max_future_skew is None else f"(_time > _clock + {rule.max_future_skew}L)"


def _refusal_sql(source: PlanSource) -> str:
    """Return SQL for the reason of a record that is too far ahead: the field, by how much, and the limit."""
    limit = source.watermark.max_future_skew
    if limit is None:
        return "NULL"
    start = sql_literal(f"{FUTURE_EVENT_TIME}:{source.event_time} (")
    end = sql_literal(f" ahead of the clock, max_future_skew {DurationMs(limit)})")
    return f"concat({start}, {_duration_sql('(_time - _clock)')}, {end})"


def _duration_sql(milliseconds: str) -> str:
    """Return SQL for a positive number of milliseconds as a duration, such as 1d2h3m4.005s."""
    parts = [_part_sql(f"{milliseconds} DIV {DAY_MS}", "d")]
    parts.append(_part_sql(f"{milliseconds} DIV {HOUR_MS} % 24", "h"))
    parts.append(_part_sql(f"{milliseconds} DIV {MINUTE_MS} % 60", "m"))
    rest_ms = f"{milliseconds} % {MINUTE_MS}"
    fractional_s = f"CAST(CAST(({rest_ms}) / 1000 AS DECIMAL(5, 3)) AS STRING)"
    seconds = f"if({rest_ms} % 1000 = 0, CAST(({rest_ms}) DIV 1000 AS STRING), {fractional_s})"
    parts.append(f"if({rest_ms} > 0, concat({seconds}, 's'), '')")
    return f"concat({', '.join(parts)})"


def _part_sql(count: str, unit: str) -> str:
    return f"if({count} > 0, concat(CAST({count} AS STRING), '{unit}'), '')"


def _without_limit(source: PlanSource) -> PlanSource:
    return replace(source, watermark=replace(source.watermark, max_future_skew=None))
