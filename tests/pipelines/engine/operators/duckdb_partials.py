"""Partials as Spark would send them, computed by DuckDB with the same SQL for every part of every aggregate."""

from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa

from penstock.conformance.reference.input_records import InputRecord
from penstock.conformance.reference.predicates import matches_predicate
from penstock.conformance.reference.window_assignment import find_containing_windows
from penstock.engine.definition.predicates import predicate_sql
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.window import Window

CONNECTION = duckdb.connect(config={"threads": 1})
CONNECTION.execute("CREATE MACRO try_sum(value) AS sum(value)")  # no sum in these tests overflows
CONNECTION.execute("CREATE MACRO raise_error(said) AS NULL")


def partials(
    stage: CompiledStage, records: Iterable[InputRecord], fields: pa.Schema, time: str, clock: int
) -> pa.Table:
    """Partials of valid records."""
    rows = [
        {
            **record.fields,
            "window_start": _instant(start),
            "window_end": _instant(end),
            "_partition": record.partition,
        }
        for record in records
        for start, end in places(stage.plan.window, record.fields[time], clock)
    ]
    bounds = [pa.field(name, pa.int64()) for name in ("window_start", "window_end", "_partition")]
    windowed = pa.Table.from_pylist(rows, schema=pa.schema([*fields, *bounds]))
    keys = [f'"{field.name}"' for field in stage.key]
    measures = {
        **_reach(stage.plan.window, time),
        "elements": "count(1)",
        **{f"matches_{i}": f"count_if({_sql(predicate_sql(p))})" for i, p in enumerate(stage.predicates)},
        **{part.name: _sql(part.sql) for part in stage.parts},
    }
    grouped = ", ".join([*keys, "window_start", "window_end", "_partition"])
    columns = ", ".join(
        [*keys, "window_start", "window_end", *(f'{sql} AS "{n}"' for n, sql in measures.items())]
    )
    CONNECTION.register("windowed", windowed)
    found: Any = CONNECTION.sql(f"SELECT {columns} FROM windowed GROUP BY {grouped} ORDER BY {grouped}")
    return found.to_arrow_table().select(stage.partial_schema.names).cast(stage.partial_schema)


def elements(stage: CompiledStage, records: Iterable[InputRecord], time: str) -> pa.Table:
    """Single records, as Spark sends them to order windows, not in their order."""
    condition = stage.plan.window.record_condition
    rows = [
        {
            **record.fields,
            "_topic": record.source,
            "_partition": record.partition,
            "_offset": record.offset,
            "_time": record.fields[time],
            "_matched": condition is not None and matches_predicate(record.fields, condition),
        }
        for record in records
    ]
    address = [pa.field("_topic", pa.string()), pa.field("_partition", pa.int32())]
    return pa.Table.from_pylist(rows[::-1], schema=pa.schema([*address, *stage.partial_schema]))


def places(window: Window, time: int, clock: int) -> list[tuple[float, float]]:
    """The windows, or for sessions the piece, that Spark assigns to a record of that time."""
    return _places(window, clock if window.uses_processing_time else time)


def _places(window: Window, time: int) -> list[tuple[float, float]]:
    match window:
        case Sessions(gap):
            return [(time - time % gap, time - time % gap + gap)]
        case _:
            return find_containing_windows(window, time)


def _reach(window: Window, time: str) -> dict[str, str]:
    match window:
        case Sessions(gap):
            return {"piece_start": f'min("{time}")', "piece_end": f'max("{time}") + {gap}'}
        case _:
            return {}


def _sql(spark: str) -> str:
    return spark.replace("`", '"')


def _instant(time: float) -> int:
    if time == float("inf"):
        return MAX_TIMESTAMP_MS
    return MIN_TIMESTAMP_MS if time == float("-inf") else int(time)
