"""Checks batches of a Delta table with Great Expectations on Spark."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.storage import StoragePath
from penstock.quality.errors import NotCheckableInStreamError
from penstock.quality.expectations.arguments import MULTI_ROW_ARGUMENTS
from penstock.quality.expectations.check_batches import CheckedBatch, select_due_batches
from penstock.quality.expectations.check_results import (
    BatchCheckResult,
    CheckResultStore,
    ExpectationResult,
    to_expectation_result,
)
from penstock.quality.expectations.gx_library import load_library
from penstock.quality.expectations.sql_compiler import compile_unexpected
from penstock.quality.expectations.suite import BatchCut, Expectation, Suite
from penstock.quality.expectations.uniqueness import (
    UNIQUE_EXPECTATIONS,
    find_repeated_rows,
    is_compared_across_batches,
    recount_unexpected,
)
from penstock.quality.table_reads import open_table, to_milliseconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MIN_TIME_MS = -(2**62)
MAX_UNEXPECTED_ROWS = 1_000
"""The maximum number of unexpected rows that are written to a file per expectation."""


def list_due_batches(
    suite: Suite, plan: Plan, watermark: int | None, warehouse: StoragePath, results: CheckResultStore
) -> list[CheckedBatch]:
    """Return the batches of a table that are due for a check; none if the table does not exist."""
    table = open_table(warehouse / suite.subject)
    if table is None:
        return []
    stage = find_stage(plan, suite)
    cut = effective_cut(suite, stage)
    last_result = results.find_newest(cut)
    final_ms = None if watermark is None else watermark - stage.lateness
    written_batch = table.transaction_version(plan.name)
    due_batches = select_due_batches(
        cut, final_ms, table.version(), None if last_result is None else last_result.batch.upto, written_batch
    )
    return [batch for batch in due_batches if batch.condition is None or can_contain_rows(table, batch)]


def effective_cut(suite: Suite, stage: Stage) -> BatchCut:
    """Return how a table is divided into batches.

    With windows by record order, a row is final when it is written, and its event time may lie before the last
    check. Such a table is checked by the rows of the stream's batches.
    """
    return "rows" if suite.cut == "final" and stage.window.is_record_ordered else suite.cut


def can_contain_rows(table: DeltaTable, batch: CheckedBatch) -> bool:
    """Tell from file statistics whether a table can have rows of a batch. Reads no rows."""
    files = pa.table(table.get_add_actions(flatten=True))
    column = "batch_id" if batch.cut == "rows" else "window_end"
    if f"min.{column}" not in files.column_names:
        return bool(files.num_rows)
    starts, ends = (files.column(f"{bound}.{column}") for bound in ("min", "max"))
    if column == "window_end":
        starts, ends = to_milliseconds(starts), to_milliseconds(ends)
    after_ms = MIN_TIME_MS if batch.after is None else batch.after
    is_inside = pc.and_(pc.less_equal(starts, batch.upto), pc.greater(ends, after_ms))
    # A file without statistics may contain rows of the batch.
    return pc.any(pc.fill_null(is_inside, True)).as_py() is True


def find_stage(plan: Plan, suite: Suite) -> Stage:
    """Return the stage that writes the table of a suite."""
    name = suite.subject.partition("/")[2]
    return next(stage for stage in plan.stages if any(sink.table == name for sink in stage.sinks))


@dataclass(frozen=True)
class CheckedRows:
    """The rows of a batch, and the rows of all earlier batches."""

    rows: "DataFrame"
    earlier: "DataFrame | None"
    stage: Stage

    @property
    def identity_columns(self) -> list[str]:
        """The columns that identify an example row."""
        return [name for name in (*self.stage.key, "window_start") if name in self.rows.columns]

    def complete_result(self, result: ExpectationResult, expectation: Expectation) -> ExpectationResult:
        """Return the result, with earlier batches counted for uniqueness expectations."""
        if result.problem is not None or self._earlier_rows(expectation) is None:
            return result
        return recount_unexpected(
            result,
            expectation,
            self.rows,
            find_repeated_rows(expectation, self.rows, self._earlier_rows(expectation)),
            self.identity_columns,
        )

    def unexpected_rows(self, expectation: Expectation) -> "DataFrame | None":
        """Return the rows that do not meet an expectation; None if it is about all rows together."""
        return select_unexpected_rows(expectation, self.rows, self._earlier_rows(expectation))

    def _earlier_rows(self, expectation: Expectation) -> "DataFrame | None":
        return (
            self.earlier
            if expectation.type in UNIQUE_EXPECTATIONS and is_compared_across_batches(expectation, self.stage)
            else None
        )


def check_batch(
    session: "SparkSession",
    suite: Suite,
    plan: Plan,
    batch: CheckedBatch,
    warehouse: StoragePath,
    results: CheckResultStore,
    now_ms: int,
) -> BatchCheckResult:
    """Validate a batch, store the result, and return it."""
    reader = session.read.format("delta")
    if batch.cut == "version":
        reader = reader.option("versionAsOf", batch.upto)
    rows = reader.load(str(warehouse / suite.subject))
    batch_frame = rows if batch.condition is None else rows.where(batch.condition)
    batch_frame = batch_frame.cache()
    stage = find_stage(plan, suite)
    checked_rows = CheckedRows(
        batch_frame, None if batch.earlier is None else rows.where(batch.earlier), stage
    )
    try:
        validation = load_library().validate_rows(suite, batch_frame, checked_rows.identity_columns)
        expectations_by_name = {
            expectation_result.name: expectation_result for expectation_result in suite.expectations
        }
        completed = (
            checked_rows.complete_result(expectation_result, expectations_by_name[expectation_result.name])
            for expectation_result in map(to_expectation_result, validation.results)
        )
        expectation_results = tuple(
            _write_unexpected_rows(expectation_result, expectations_by_name, checked_rows, results, batch)
            for expectation_result in completed
        )
    finally:
        batch_frame.unpersist()
    batch_result = BatchCheckResult(suite.subject, batch, now_ms, expectation_results)
    results.save(batch_result)
    return batch_result


def check_table(
    session: "Callable[[], SparkSession]",
    suite: Suite,
    plan: Plan,
    watermark: int | None,
    warehouse: StoragePath,
    home: Path,
    now_ms: Callable[[], int],
) -> list[BatchCheckResult]:
    """Check every due batch of a table. Spark starts only if a batch is due."""
    results = CheckResultStore(home, suite.subject)
    return [
        check_batch(session(), suite, plan, batch, warehouse, results, now_ms())
        for batch in list_due_batches(suite, plan, watermark, warehouse, results)
    ]


def _write_unexpected_rows(
    result: ExpectationResult,
    expectations: dict[str, Expectation],
    checked_rows: CheckedRows,
    results: CheckResultStore,
    batch: CheckedBatch,
) -> ExpectationResult:
    """Write the unexpected rows to a file, if the expectation is about single rows."""
    if result.passed:
        return result
    unexpected = checked_rows.unexpected_rows(expectations[result.name])
    if unexpected is None:
        return result
    rows = unexpected.limit(MAX_UNEXPECTED_ROWS).toArrow().to_pylist()
    path = results.folder / batch.label / f"{result.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in rows), "utf-8")
    return replace(result, rows=str(path))


def select_unexpected_rows(
    expectation: Expectation, rows: "DataFrame", earlier: "DataFrame | None" = None
) -> "DataFrame | None":
    """Return the rows that do not meet an expectation; None if it is about all rows together.

    With `earlier`, a row that must be unique may not repeat an earlier row either. `mostly` is ignored: all
    unexpected rows are returned. A `row_condition` limits the rows to those that it selects.
    """
    if expectation.type in UNIQUE_EXPECTATIONS:
        return find_repeated_rows(expectation, rows, earlier)
    row_expectation = replace(
        expectation,
        kwargs={
            name: argument for name, argument in expectation.kwargs.items() if name not in MULTI_ROW_ARGUMENTS
        },
    )
    try:
        condition = compile_unexpected(row_expectation, {name: kind.upper() for name, kind in rows.dtypes})
    except NotCheckableInStreamError:
        return None
    return load_library().filter_relevant_rows(expectation, rows).where(condition)
