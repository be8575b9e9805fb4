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


def compute_partials(
    stage: CompiledStage, records: Iterable[InputRecord], fields: pa.Schema, time_field: str, clock: int
) -> pa.Table:
    """Partials of valid records."""
    rows = [
        {
            **record.fields,
            "window_start": _clamp_time(start),
            "window_end": _clamp_time(end),
            "_partition": record.partition,
        }
        for record in records
        for start, end in find_windows(stage.plan.window, record.fields[time_field], clock)
    ]
    bound_fields = [pa.field(name, pa.int64()) for name in ("window_start", "window_end", "_partition")]
    windowed = pa.Table.from_pylist(rows, schema=pa.schema([*fields, *bound_fields]))
    keys = [f'"{field.name}"' for field in stage.key]
    measures = {
        **_session_columns(stage.plan.window, time_field),
        "elements": "count(1)",
        **{
            f"matches_{i}": f"count_if({_to_duckdb_sql(predicate_sql(p))})"
            for i, p in enumerate(stage.predicates)
        },
        **{part.name: _to_duckdb_sql(part.sql) for part in stage.parts},
    }
    grouping = ", ".join([*keys, "window_start", "window_end", "_partition"])
    columns = ", ".join(
        [*keys, "window_start", "window_end", *(f'{sql} AS "{name}"' for name, sql in measures.items())]
    )
    CONNECTION.register("windowed", windowed)
    result: Any = CONNECTION.sql(f"SELECT {columns} FROM windowed GROUP BY {grouping} ORDER BY {grouping}")
    return result.to_arrow_table().select(stage.partial_schema.names).cast(stage.partial_schema)


def list_elements(stage: CompiledStage, records: Iterable[InputRecord], time_field: str) -> pa.Table:
    """Single records, as Spark sends them to order windows, not in their order."""
    condition = stage.plan.window.record_condition
    rows = [
        {
            **record.fields,
            "_topic": record.source,
            "_partition": record.partition,
            "_offset": record.offset,
            "_time": record.fields[time_field],
            "_matched": condition is not None and matches_predicate(record.fields, condition),
        }
        for record in records
    ]
    address = [pa.field("_topic", pa.string()), pa.field("_partition", pa.int32())]
    return pa.Table.from_pylist(rows[::-1], schema=pa.schema([*address, *stage.partial_schema]))


def find_windows(window: Window, time: int, clock: int) -> list[tuple[float, float]]:
    """The windows, or for sessions the piece, that Spark assigns to a record of that time."""
    return _find_windows_at(window, clock if window.uses_processing_time else time)


def _find_windows_at(window: Window, time: int) -> list[tuple[float, float]]:
    match window:
        case Sessions(gap):
            return [(time - time % gap, time - time % gap + gap)]
        case _:
            return find_containing_windows(window, time)


def _session_columns(window: Window, time_field: str) -> dict[str, str]:
    match window:
        case Sessions(gap):
            return {"piece_start": f'min("{time_field}")', "piece_end": f'max("{time_field}") + {gap}'}
        case _:
            return {}


def _to_duckdb_sql(spark_sql: str) -> str:
    return spark_sql.replace("`", '"')


def _clamp_time(time: float) -> int:
    if time == float("inf"):
        return MAX_TIMESTAMP_MS
    return MIN_TIMESTAMP_MS if time == float("-inf") else int(time)
