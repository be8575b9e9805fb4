"""Partials as Spark would send them, computed by DuckDB with the same SQL for every part of every aggregate."""

from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa

from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.predicates import predicate_sql
from penstock.pipelines.reference.assignment import windows_of
from penstock.pipelines.reference.records import Record
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER

CONNECTION = duckdb.connect(config={"threads": 1})


def partials(stage: ReadyStage, records: Iterable[Record], fields: pa.Schema, time: str) -> pa.Table:
    """Partials of records that are all good."""
    rows = [
        {
            **record.fields,
            "window_start": _instant(start),
            "window_end": _instant(end),
            "_partition": record.partition,
        }
        for record in records
        for start, end in windows_of(stage.plan.window, record.fields[time])  # type: ignore[arg-type]
    ]
    bounds = [pa.field(name, pa.int64()) for name in ("window_start", "window_end", "_partition")]
    windowed = pa.Table.from_pylist(rows, schema=pa.schema([*fields, *bounds]))
    keys = [f'"{field.name}"' for field in stage.key]
    measures = {
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
    return found.to_arrow_table().select(stage.partial_columns.names).cast(stage.partial_columns)


def _sql(spark: str) -> str:
    return spark.replace("`", '"')


def _instant(time: float) -> int:
    if time == float("inf"):
        return NEVER
    return BEFORE_ALL if time == float("-inf") else int(time)
