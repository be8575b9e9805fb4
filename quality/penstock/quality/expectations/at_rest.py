"""Batches of a Delta table validated by Great Expectations on Spark."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.pipelines.plan import Plan, Stage
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.store import Place
from penstock.quality.audit.tables import milliseconds, opened_table
from penstock.quality.errors import NotInStreamError
from penstock.quality.expectations.batches import Batch, due
from penstock.quality.expectations.compile import broken_when
from penstock.quality.expectations.library import library
from penstock.quality.expectations.outcome import Met, Outcome, Outcomes, met
from penstock.quality.expectations.suite import Expectation, Suite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVER = -(2**62)
UNIQUE = ("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
SAME = "_rows_that_are_the_same"
ROWS_KEPT = 1_000
"""Rows that are written down of those that did not meet an expectation."""


def batches_due(
    suite: Suite, plan: Plan, watermark: int | None, warehouse: Place, kept: Outcomes
) -> list[Batch]:
    """Return what is to be checked of a table now; nothing as long as there is no table."""
    table = opened_table(warehouse / suite.about)
    if table is None:
        return []
    last = kept.newest()
    final = None if watermark is None else watermark - stage_of(plan, suite).lateness
    same = last is not None and last.batch.cut == suite.cut
    wanted = due(suite.cut, final, table.version(), last.batch.upto if last is not None and same else None)
    return [batch for batch in wanted if batch.condition is None or may_hold(table, batch)]


def may_hold(table: DeltaTable, batch: Batch) -> bool:
    """Tell whether any window of a batch may be in a table, by the statistics of its files: no row is read."""
    files = pa.table(table.get_add_actions(flatten=True))
    if "min.window_end" not in files.column_names:
        return bool(files.num_rows)
    begins, ends = (milliseconds(files.column(f"{bound}.window_end")) for bound in ("min", "max"))
    after = EVER if batch.after is None else batch.after
    inside = pc.and_(pc.less_equal(begins, batch.upto), pc.greater(ends, after))
    # A file that does not tell is looked into.
    return pc.any(pc.fill_null(inside, True)).as_py() is True


def stage_of(plan: Plan, suite: Suite) -> Stage:
    """Return the stage that writes a suite's table."""
    name = suite.about.partition("/")[2]
    return next(stage for stage in plan.stages if any(sink.table == name for sink in stage.sinks))


def check_batch(
    session: "SparkSession",
    suite: Suite,
    plan: Plan,
    batch: Batch,
    warehouse: Place,
    kept: Outcomes,
    now_ms: int,
) -> Outcome:
    """Validate a batch, write down what came of it, and return that."""
    reader = session.read.format("delta")
    if batch.cut == "version":
        reader = reader.option("versionAsOf", batch.upto)
    rows = reader.load(str(warehouse / suite.about))
    chosen = rows if batch.condition is None else rows.where(batch.condition)
    chosen = chosen.cache()
    try:
        index = [name for name in (*stage_of(plan, suite).key, "window_start") if name in chosen.columns]
        result = library().validated(suite, chosen, index)
        by_name = {one.name: one for one in suite.expectations}
        found = tuple(_with_rows(met(one), by_name, chosen, kept, batch) for one in result.results)
    finally:
        chosen.unpersist()
    outcome = Outcome(suite.about, batch, now_ms, found)
    kept.keep(outcome)
    return outcome


def check_table(
    session: "Callable[[], SparkSession]",
    suite: Suite,
    plan: Plan,
    watermark: int | None,
    warehouse: Place,
    home: Path,
    now_ms: Callable[[], int],
) -> list[Outcome]:
    """Check every batch of a table that is due; Spark is asked for only where there is one."""
    kept = Outcomes(home, suite.about)
    return [
        check_batch(session(), suite, plan, batch, warehouse, kept, now_ms())
        for batch in batches_due(suite, plan, watermark, warehouse, kept)
    ]


def _with_rows(
    one: Met, suite: dict[str, Expectation], rows: "DataFrame", kept: Outcomes, batch: Batch
) -> Met:
    """The same with the file of the rows that did not meet it, where single rows can be told."""
    if one.passed:
        return one
    broken = broken_rows(suite[one.name], rows)
    if broken is None:
        return one
    found = broken.limit(ROWS_KEPT).toArrow().to_pylist()
    path = kept.folder / batch.label / f"{one.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in found), "utf-8")
    return replace(one, rows=str(path))


def broken_rows(one: Expectation, rows: "DataFrame") -> "DataFrame | None":
    """Return the rows that do not meet an expectation; None where it is about all rows together."""
    if one.type in UNIQUE:
        columns = [quoted(name) for name in one.kwargs.get("column_list") or [one.kwargs["column"]]]
        there = " OR ".join(f"{column} IS NOT NULL" for column in columns)
        counted = rows.selectExpr("*", f"count(1) OVER (PARTITION BY {', '.join(columns)}) AS {SAME}")
        return counted.where(f"{SAME} > 1 AND ({there})").drop(SAME)
    try:
        return rows.where(broken_when(one, {name: kind.upper() for name, kind in rows.dtypes}))
    except NotInStreamError:
        return None
