"""The check of results that depend on how records were cut into batches: the recorded batches, run again.

Clocks, offsets and definition are those of then, so each pane must come again, row for row, early ones included,
and so must each batch's accounts and watermark.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.poison import Poisoned
from penstock.pipelines.fold.order.slots import NUMBER
from penstock.pipelines.host.control import BatchRecord
from penstock.pipelines.host.telling import batch_record
from penstock.pipelines.plan import (
    CompleteTable,
    FinalPanes,
    LatestValues,
    OrderWindow,
    PaneLog,
    Quantiles,
    Sink,
    Stage,
)
from penstock.pipelines.spark.rerun import KeptPanes, Rerun, rerun
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.spark.stored.together import StoredTogether
from penstock.pipelines.tables.places import LOOKUPS, result_of
from penstock.quality.audit.comparable import Sample
from penstock.quality.audit.recompute import only, share
from penstock.quality.audit.refused import AHEAD, refused
from penstock.quality.audit.results import Compared, newest, results
from penstock.quality.audit.scope import Scope
from penstock.quality.audit.tables import as_of, rows, there
from penstock.quality.audit.verdict import Difference, Verdict, judged, unproven

NTH = "row_of_batch"
"""Which row of a batch it is, of those that nothing else tells apart."""
COPY = "copy"
"""Which of a batch's rows it is that are the same in all columns, counted from 0."""


def cannot_replay(scope: Scope, sample: Sample) -> str | None:
    """Say why the batches of a stream cannot be run again; None where they can."""
    first, kinds = scope.batches[0].batch_id, {batch.kind for batch in scope.batches}
    if "replay" in kinds:
        return "it was replayed, and its batches are no longer those that made its tables"
    if others := kinds - {"data", "tick"}:
        return f"its state was changed by a batch of another kind ({', '.join(sorted(others))})"
    if first > 0:
        return f"the control store has forgotten its batches before {first} (maintenance.batches_days)"
    if (sample.start, sample.end) != (None, None):
        return "its results depend on every batch before: take a share of the keys instead"
    if sample.keys < 1 and (len(scope.plan.stages) > 1 or not scope.plan.first.key):
        return "it has no key of which a share could be taken through all of it"
    return None


def replayed(name: str, scope: Scope, stored: Mapping[str, Stored], sample: Sample) -> Verdict:
    """Tables hold, row for row, what the recorded batches say when they are run again."""
    why = cannot_replay(scope, sample)
    if why is not None:
        return unproven(name, f"the batches of {scope.plan.name} cannot be run again: {why}")
    plan, stage = scope.plan, scope.plan.first
    if sample.keys < 1:
        steps = (*stage.steps, only(share(stage, sample)))
        plan = replace(plan, stages=tuple(replace(s, steps=steps) if s is stage else s for s in plan.stages))
    told: list[Outcome] = []

    def tell(outcome: Outcome) -> None:
        told.append(outcome)
        if len(told) % 100 == 0:
            scope.tell(f"running batches again: {len(told)} of {len(scope.batches)}")

    shutil.rmtree(scope.scratch, ignore_errors=True)
    try:
        records = StoredTogether(list(stored.values()))
        seen = looked_up(scope)
        batches = [recorded(batch, seen.get(batch.batch_id, {})) for batch in scope.batches]
        aside = list(poisoned(scope))
        made = rerun(
            plan,
            scope.session(),
            records,
            batches,
            scope.scratch,
            tell,
            aside,
            scope.warehouse,
            scope.schemas,
        )
        return _verdict(name, scope, sample, made, told)
    finally:
        shutil.rmtree(scope.scratch, ignore_errors=True)


def recorded(batch: BatchRecord, lookups: Mapping[str, int]) -> Rerun:
    """Return what is to be run of a batch that was committed."""
    spans = (Range(one.topic, one.partition, one.start, one.end) for one in batch.accounts)
    return Rerun(batch.clock_ms, tuple(spans), lookups=lookups)


def looked_up(scope: Scope) -> Mapping[int, Mapping[str, int]]:
    """Return the versions of tables that each batch saw."""
    found = rows(scope.warehouse / LOOKUPS / scope.plan.name, scope.upto)
    seen: dict[int, dict[str, int]] = {}
    for row in found.to_pylist() if found is not None else ():
        seen.setdefault(row["batch_id"], {})[row["table"]] = row["version"]
    return seen


def poisoned(scope: Scope) -> Iterator[Poisoned]:
    """Yield records that were refused for a reason that would not be found again."""
    for row in refused(scope).to_pylist():
        if row["reason"] != AHEAD:  # the clock of its batch finds that again
            yield Poisoned(row["topic"], row["partition"], row["offset"], row["reason"])


def _verdict(name: str, scope: Scope, sample: Sample, made: KeptPanes, told: Sequence[Outcome]) -> Verdict:
    again = [batch_record(scope.plan.name, outcome) for outcome in told]
    differences = list(not_the_same(scope.batches, again)) if sample.whole else []
    count = 0
    for stage in scope.plan.stages:
        panes = made.of(stage.name)
        for sink in stage.sinks:
            table = result_of(sink)
            found = _chosen(scope, sample, _standing(scope, sink, table))
            of = identified(stage, sink, table, [n for n in panes.column_names if n in found.column_names])
            expected = shown(sink, panes, of)
            count += expected.num_rows
            differences += results(of, _numbered(found, of), _numbered(expected, of))
    share_of = "" if sample.whole else " of the sample"
    fine = f"{count:,} rows{share_of} came again, by {len(told):,} batches that were run again"
    return judged(name, differences, fine)


def not_the_same(batches: Sequence[BatchRecord], again: Sequence[BatchRecord]) -> Iterator[Difference]:
    """Yield the batches that count, move the watermark or show otherwise when they are run again."""
    for then, now in zip(batches, again, strict=True):
        where = f"batch {then.batch_id}"
        if then.watermark_ms != now.watermark_ms:
            yield Difference(
                where, f"its watermark is {then.watermark_ms}, and run again it is {now.watermark_ms}"
            )
        for one, other in zip(then.accounts, now.accounts, strict=True):
            if one != other:
                yield Difference(
                    f"{one.topic}/{one.partition}, {where}", f"it counts {one}, and run again {other}"
                )
        if then.panes != now.panes:
            yield Difference(where, f"it showed {dict(then.panes)}, and run again {dict(now.panes)}")


def identified(stage: Stage, sink: Sink, table: str, columns: Sequence[str]) -> Compared:
    """Return what names a row of a sink's table; all else must be the same, but sketches that toss coins.

    A window of a join may have any number of rows, in no order that means anything: each is named by all that it
    joins, so one that was edited is a row that nothing gives, and one that is missing.
    """
    names = [*stage.key, "window_start", "window_end"]
    pairs = [] if stage.join is None else [each.name for each in stage.join.columns if each.name not in names]
    names += [NUMBER.name] if isinstance(stage.window, OrderWindow) else []
    if isinstance(sink, PaneLog | FinalPanes):
        names = ["batch_id", *names, "kind", *pairs, COPY if pairs else NTH]
    tossed = {output.name for output in stage.aggregates if isinstance(output.of, Quantiles)}
    return Compared(table, names, [name for name in columns if name not in {*names, *tossed}])


def shown(sink: Sink, panes: pa.Table, of: Compared) -> pa.Table:
    """Return what a sink makes of all panes."""
    match sink:
        case LatestValues() | CompleteTable():
            return newest(panes, of.identity)
        case FinalPanes():
            return panes.filter(pc.and_(panes.column("final"), pc.equal(panes.column("kind"), "insert")))
        case PaneLog():
            return panes


def _standing(scope: Scope, sink: Sink, table: str) -> pa.Table:
    path = scope.warehouse / table
    if isinstance(sink, LatestValues | CompleteTable):
        found = as_of(path, scope.plan.name, scope.upto)
    else:
        found = rows(path, scope.upto)
    return there(path, found)


def _chosen(scope: Scope, sample: Sample, table: pa.Table) -> pa.Table:
    """The rows whose key is in the sample."""
    if sample.keys == 1.0 or not table.num_rows:
        return table
    import polars as pl

    stage = scope.plan.stage
    keys = scope.session().createDataFrame(table.select(stage.key)).distinct().where(share(stage, sample))
    wanted = pl.DataFrame(pl.from_arrow(keys.toArrow()))
    frame = pl.DataFrame(pl.from_arrow(table))
    return frame.join(wanted, on=list(stage.key), how="semi", nulls_equal=True).to_arrow()


def _numbered(table: pa.Table, of: Compared) -> pa.Table:
    """Rows with their number among those of a batch that nothing else tells apart, in the order of the table."""
    number = next((name for name in of.identity if name in (NTH, COPY)), None)
    if number is None:
        return table
    import polars as pl

    frame = pl.DataFrame(pl.from_arrow(table))
    alike = [name for name in of.identity if name != number]
    return frame.with_columns(pl.int_range(pl.len()).over(alike).alias(number)).to_arrow()
