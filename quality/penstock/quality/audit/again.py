"""The check of results: the tables of a stream against what the records that it has read give.

Where a result is a function of the records alone, the bounded pipeline makes it again; where it depends on how they
were cut into batches, or on clocks, the recorded batches are run again.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.plan import CompleteTable, FinalPanes, LatestValues, PaneLog, Sessions, Sink
from penstock.pipelines.plan.codec import fingerprint
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.store import Place
from penstock.pipelines.tables.places import result_of
from penstock.quality.audit.chain import FATES
from penstock.quality.audit.comparable import Sample, by_batch, compared, in_order, no_sample, settled
from penstock.quality.audit.erased import erasures, without_erased
from penstock.quality.audit.kept import Kept
from penstock.quality.audit.recompute import Again, again, apart, nowhere, run_again, share
from penstock.quality.audit.records import GAVE_WAY, ranges_read
from penstock.quality.audit.refused import refused
from penstock.quality.audit.replayed import replayed
from penstock.quality.audit.results import Compared, newest, results
from penstock.quality.audit.scope import Scope
from penstock.quality.audit.set_aside import ADDRESS
from penstock.quality.audit.tables import as_of, rows, there
from penstock.quality.audit.torn import torn, without
from penstock.quality.audit.verdict import Difference, Verdict, judged, unproven

RESULTS = "results"


def recomputed(scope: Scope, topics: Mapping[str, Kept], sample: Sample) -> Verdict:
    """The tables hold what the stream's records give."""
    why = changed(scope) or no_sample(scope.plan, sample)
    if why is not None:
        return unproven(RESULTS, f"the results of {scope.plan.name} cannot be computed again: {why}")
    sample = younger(scope, sample)
    spans = ranges_read(scope.ledger)
    stored: dict[str, Stored] = {}
    for topic, kept in topics.items():
        source = kept.source_for([span for span in spans if span.topic == topic])
        if source is None:
            return unproven(RESULTS, f"some of what was read of {topic} has expired, and is in no archive")
        ours = scope.ledger.filter(pc.equal(scope.ledger.column("topic"), topic))
        if kept.lacks(ours, source):
            return unproven(RESULTS, f"some of what was read of {topic} {GAVE_WAY}")
        stored[topic] = source
    if by_batch(scope.plan):
        return replayed(RESULTS, scope, stored, sample)
    stage = scope.plan.stage
    late = nowhere(stage, scope.late) if scope.late.num_rows else scope.late.select(ADDRESS)
    what = Again(again(scope.plan, sample, late), spans, late, refused(scope).select(ADDRESS))
    shutil.rmtree(scope.scratch, ignore_errors=True)
    try:
        made = run_again(
            scope.session(),
            what,
            stored,
            scope.scratch,
            scope.warehouse,
            scope.clock,
            scope.tell,
            scope.schemas,
        )
        return _verdict(scope, sample, made, what)
    finally:
        shutil.rmtree(scope.scratch, ignore_errors=True)


def changed(scope: Scope) -> str | None:
    """Say that a stream was defined otherwise, where nothing can be told of its results; None where it can.

    Of windows that begin after all that was read before the change, they are told.
    """
    known = scope.changed_after
    plans = {one.plan for one in scope.outcomes() if one.batch_id > known} - {"", fingerprint(scope.plan)}
    then = "what it made then is not what it makes now"
    if plans:
        return f"it was defined otherwise within the last batches: {then}"
    apart = by_batch(scope.plan) or in_order(scope.plan.stage) or not all(one.told for one in scope.changes)
    return f"it was defined otherwise up to batch {known}: {then}" if known >= 0 and apart else None


def younger(scope: Scope, sample: Sample) -> Sample:
    """Return a sample without the windows that may have a record from before the definition was changed."""
    read = [one.newest + 1 for one in scope.changes if one.newest is not None]
    begins = [*read, *([] if sample.start is None else [sample.start])]
    return replace(sample, start=max(begins)) if begins else sample


def _verdict(scope: Scope, sample: Sample, made: Place, what: Again) -> Verdict:
    stage = scope.plan.stage
    again_made = _made(made, scope)
    compared_rows = 0
    differences: list[Difference] = list(_fates(scope, made, what)) if sample.whole else []
    for sink in stage.sinks:
        of = compared(stage, result_of(sink))
        standing = _standing(scope, sink, of)
        cut = torn(standing, stage.key) if isinstance(stage.window, Sessions) else []
        found, expected = (
            without(_sampled(scope, sample, t), stage.key, cut) for t in (standing, again_made)
        )
        should = _only_those_of(expected, found, of) if isinstance(sink, FinalPanes) else expected
        compared_rows += should.num_rows
        differences += results(of, found, should)
    share_of = "" if sample.whole else " of the sample"
    if scope.changed_after >= 0:
        share_of = f" of windows without a record up to batch {scope.changed_after}, by another definition,"
    fine = f"{compared_rows:,} rows{share_of} in {len(stage.sinks)} tables are what their records give"
    if not compared_rows and not differences:
        return unproven(
            RESULTS, f"no window{share_of} is over yet, so there is nothing that may not change any more"
        )
    return judged(RESULTS, differences, fine)


def _made(made: Place, scope: Scope) -> pa.Table:
    folder = "panes" if in_order(scope.plan.stage) else "latest"
    found = rows(made / folder / scope.plan.stage.name, LAST)
    assert found is not None
    return found


LAST = 1 << 40
"""A number beyond that of any batch of a run of its own."""


def _standing(scope: Scope, sink: Sink, of: Compared) -> pa.Table:
    """What a table says of each window, as of the last batch that is audited."""
    path = scope.warehouse / of.table
    match sink:
        case LatestValues() | CompleteTable():
            found = as_of(path, scope.plan.name, scope.upto)
        case PaneLog() | FinalPanes():
            found = rows(path, scope.upto)
            if found is not None and not in_order(scope.plan.stage):
                found = newest(found, of.identity)
    return there(path, found)


def _sampled(scope: Scope, sample: Sample, table: pa.Table) -> pa.Table:
    """The rows of windows that are over, that no record has missed, and whose key is in the sample, and kept."""
    stage = scope.plan.stage
    table = apart(stage, settled(table, stage, scope.watermark, sample), scope.late)
    table = without_erased(table, scope.plan.name, erasures(scope))
    if sample.keys == 1.0 or not table.num_rows:
        return table
    chosen = scope.session().createDataFrame(table.select(stage.key)).distinct().where(share(stage, sample))
    keys = chosen.toArrow()
    return _only_those_of(table, keys, Compared("", list(stage.key), ()))


def _only_those_of(table: pa.Table, chosen: pa.Table, of: Compared) -> pa.Table:
    import polars as pl

    wanted = pl.DataFrame(pl.from_arrow(chosen.select(of.identity)))
    frame = pl.DataFrame(pl.from_arrow(table))
    return frame.join(wanted, on=list(of.identity), how="semi", nulls_equal=True).to_arrow()


def _fates(scope: Scope, made: Place, what: Again) -> Iterator[Difference]:
    """Yield the partitions whose records have other fates when they are read again."""
    ledger = rows(made / scope.ledger_name, LAST)
    assert ledger is not None
    ours, theirs = _summed(scope.ledger), _summed(ledger)
    late, refused = _counted(what.late), _counted(what.refused)
    for place, told in sorted(ours.items()):
        again_told = theirs.get(place, dict.fromkeys(FATES, 0))
        expected = {
            "folded": again_told["folded"],
            "quarantined": again_told["quarantined"] + refused.get(place, 0),
            "duplicate": again_told["duplicate"],
            "filtered": again_told["filtered"] - late.get(place, 0),
        }
        for fate, count in expected.items():
            if told[fate] != count:
                yield Difference(
                    f"{place[0]}/{place[1]}",
                    f"the ledger counts {told[fate]} {fate}, and read again there are {count}",
                )


def _summed(ledger: pa.Table) -> dict[tuple[str, int], dict[str, int]]:
    summed = ledger.group_by(["topic", "partition"]).aggregate([(fate, "sum") for fate in FATES])
    return {
        (row["topic"], row["partition"]): {fate: row[f"{fate}_sum"] for fate in FATES}
        for row in summed.to_pylist()
    }


def _counted(addresses: pa.Table) -> dict[tuple[str, int], int]:
    counted = addresses.group_by(["topic", "partition"]).aggregate([("offset", "count")])
    return {(row["topic"], row["partition"]): row["offset_count"] for row in counted.to_pylist()}
