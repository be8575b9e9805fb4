"""Batches of a Delta table validated by Great Expectations on Spark."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.pipelines.plan import Plan, Stage
from penstock.pipelines.plan.windows import in_order
from penstock.pipelines.store import Place
from penstock.quality.audit.tables import milliseconds, opened_table
from penstock.quality.errors import NotInStreamError
from penstock.quality.expectations.arguments import BEYOND_ROWS
from penstock.quality.expectations.batches import Batch, due
from penstock.quality.expectations.compile import broken_when
from penstock.quality.expectations.library import library
from penstock.quality.expectations.outcome import Met, Outcome, Outcomes, met
from penstock.quality.expectations.repeats import UNIQUE, crosses, over_all, repeats
from penstock.quality.expectations.suite import Cut, Expectation, Suite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVER = -(2**62)
ROWS_KEPT = 1_000
"""Rows that are written down of those that did not meet an expectation."""


def batches_due(
    suite: Suite, plan: Plan, watermark: int | None, warehouse: Place, kept: Outcomes
) -> list[Batch]:
    """Return what is to be checked of a table now; nothing as long as there is no table."""
    table = opened_table(warehouse / suite.about)
    if table is None:
        return []
    stage = stage_of(plan, suite)
    cut = cut_of(suite, stage)
    last = kept.newest(cut)
    final = None if watermark is None else watermark - stage.lateness
    written = table.transaction_version(plan.name)
    wanted = due(cut, final, table.version(), None if last is None else last.batch.upto, written)
    return [batch for batch in wanted if batch.condition is None or may_hold(table, batch)]


def cut_of(suite: Suite, stage: Stage) -> Cut:
    """Return what a batch of a table is.

    Where a stage takes records in their order, a row is final as it is written, and may tell of a time that lies
    before the last check: it is checked by the batch that wrote it.
    """
    return "rows" if suite.cut == "final" and in_order(stage.window) else suite.cut


def may_hold(table: DeltaTable, batch: Batch) -> bool:
    """Tell whether any row of a batch may be in a table, by the statistics of its files: no row is read."""
    files = pa.table(table.get_add_actions(flatten=True))
    column = "batch_id" if batch.cut == "rows" else "window_end"
    if f"min.{column}" not in files.column_names:
        return bool(files.num_rows)
    begins, ends = (files.column(f"{bound}.{column}") for bound in ("min", "max"))
    if column == "window_end":
        begins, ends = milliseconds(begins), milliseconds(ends)
    after = EVER if batch.after is None else batch.after
    inside = pc.and_(pc.less_equal(begins, batch.upto), pc.greater(ends, after))
    # A file that does not tell is looked into.
    return pc.any(pc.fill_null(inside, True)).as_py() is True


def stage_of(plan: Plan, suite: Suite) -> Stage:
    """Return the stage that writes a suite's table."""
    name = suite.about.partition("/")[2]
    return next(stage for stage in plan.stages if any(sink.table == name for sink in stage.sinks))


@dataclass(frozen=True)
class Checked:
    """The rows of a batch, and those of the batches before it."""

    rows: "DataFrame"
    earlier: "DataFrame | None"
    stage: Stage

    @property
    def index(self) -> list[str]:
        """The columns by which rows that are shown are told apart."""
        return [name for name in (*self.stage.key, "window_start") if name in self.rows.columns]

    def told(self, met: Met, one: Expectation) -> Met:
        """What came of an expectation, over the batches before where these count."""
        if met.problem is not None or self._before(one) is None:
            return met
        return over_all(met, one, self.rows, repeats(one, self.rows, self._before(one)), self.index)

    def broken(self, one: Expectation) -> "DataFrame | None":
        """The rows that do not meet an expectation; None where it is about all rows together."""
        return broken_rows(one, self.rows, self._before(one))

    def _before(self, one: Expectation) -> "DataFrame | None":
        return self.earlier if one.type in UNIQUE and crosses(one, self.stage) else None


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
    stage = stage_of(plan, suite)
    checked = Checked(chosen, None if batch.earlier is None else rows.where(batch.earlier), stage)
    try:
        result = library().validated(suite, chosen, checked.index)
        by_name = {one.name: one for one in suite.expectations}
        told = (checked.told(one, by_name[one.name]) for one in map(met, result.results))
        found = tuple(_with_rows(one, by_name, checked, kept, batch) for one in told)
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
    one: Met, suite: dict[str, Expectation], checked: Checked, kept: Outcomes, batch: Batch
) -> Met:
    """The same with the file of the rows that did not meet it, where single rows can be told."""
    if one.passed:
        return one
    broken = checked.broken(suite[one.name])
    if broken is None:
        return one
    found = broken.limit(ROWS_KEPT).toArrow().to_pylist()
    path = kept.folder / batch.label / f"{one.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in found), "utf-8")
    return replace(one, rows=str(path))


def broken_rows(
    one: Expectation, rows: "DataFrame", earlier: "DataFrame | None" = None
) -> "DataFrame | None":
    """Return the rows that do not meet an expectation; None where it is about all rows together.

    With `earlier` what must be unique must not have been there either. Where most rows suffice, they are those that
    the others are counted against; where a condition says of which rows something is expected, they are of these.
    """
    if one.type in UNIQUE:
        return repeats(one, rows, earlier)
    of_each = replace(
        one, kwargs={name: said for name, said in one.kwargs.items() if name not in BEYOND_ROWS}
    )
    try:
        broken = broken_when(of_each, {name: kind.upper() for name, kind in rows.dtypes})
    except NotInStreamError:
        return None
    return library().chosen(one, rows).where(broken)
