"""Batches that a stream has run once, run again: the same records, cuts and clocks, so the same panes.

Spark's job is the dear part of a small batch, so many batches share one, grouped by batch. The fold is done batch
by batch, by the engine of live streams, with a journal and a state of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.batch.engine import Engine, Open
from penstock.pipelines.batch.inputs import rules_of
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.batch.options import Options
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.poison import Poisoned
from penstock.pipelines.batch.reading import LATE, Reading
from penstock.pipelines.batch.right import Right
from penstock.pipelines.batch.tables import QUARANTINED, Written
from penstock.pipelines.fold.graph import ready_graph
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.repeats.memory import memory_of
from penstock.pipelines.spark.avro import Schemas, no_registry, writers_of
from penstock.pipelines.spark.fields import FieldTypes
from penstock.pipelines.spark.shared import SharedReading, Spans
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.store import Place
from penstock.pipelines.tables.change import Change
from penstock.pipelines.tables.columns import as_table
from penstock.pipelines.tables.lookup import LookedUp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS_TO_A_JOB = 200_000
BATCHES_TO_A_JOB = 1_000


@dataclass(frozen=True)
class Rerun:
    """A batch as it was: its clock, and the offsets that it read; a tick read none.

    A watermark stands in the place of the one that the records make, as in an intent. `lookups` are the versions of
    tables that its steps look into.
    """

    clock: int
    ranges: tuple[Range, ...] = ()
    watermark: int | None = None
    lookups: Mapping[str, int] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """How many offsets it reached over."""
        return sum(span.end - span.start for span in self.ranges)


class KeptPanes:
    """What a run says of each stage, held in memory; late and quarantined records are counted, and not kept."""

    def __init__(self, plan: Plan) -> None:
        self._panes: dict[str, list[pa.Table]] = {stage.name: [] for stage in plan.stages}

    def write(self, rows: Written, moment: Moment) -> dict[str, Change]:
        """Keep a batch's panes; each batch comes once, for a run of this kind is never resumed."""
        for stage, table in rows.panes.items():
            self._panes[stage].append(as_table(table))
        return {}

    def discard(self, changes: Mapping[str, Change]) -> None:
        """Do nothing: a run that fails is over, and what it kept goes with it."""

    def commit(self, batch_id: int, changes: Mapping[str, Change], clock: int) -> None:
        """Do nothing: what was written is kept already."""

    def of(self, stage: str) -> pa.Table:
        """Every pane of a stage, in the order of batches."""
        return pa.concat_tables(self._panes[stage])


def rerun(
    plan: Plan,
    session: "SparkSession",
    stored: Stored,
    batches: Sequence[Rerun],
    folder: Path,
    told: Callable[[Outcome], None],
    poisoned: Sequence[Poisoned] = (),
    warehouse: Place | None = None,
    schemas: Schemas = no_registry,
) -> KeptPanes:
    """Run batches again, numbered from 0, in an empty folder. `poisoned` are records that were no good then.

    The tables that steps look into are in the warehouse; `schemas` finds those of records in Avro.
    """
    looked_up = LookedUp(plan.lookups, warehouse or folder)
    graph = ready_graph(plan, FieldTypes(session).of(plan))
    panes = KeptPanes(plan)
    right, memory = Right(plan.name, 1, lambda: True), memory_of(plan, folder / "ids")
    engine = Engine(graph, rules_of(plan.sources), folder, panes, right, told, Options(memory=memory))
    for some in sharing(batches):
        data = [(number, batch) for number, batch in some if batch.ranges]
        spans = {number: Spans(number, batch.clock, batch.ranges) for number, batch in data}
        ranges = over_all(tuple(spans.values()))
        for number, batch in some:
            if number not in spans:
                engine.tick(batch.clock, batch.watermark)
                continue
            if number == data[0][0]:
                whole = SharedReading(
                    stored.records(ranges),
                    plan.sources,
                    graph.first,
                    "_batch_clock",
                    ranges,
                    poisoned=tuple(poisoned),
                    found=looked_up.at(batch.lookups),
                    others=graph.firsts[1:],
                    writers=writers_of(plan.sources, schemas),
                    batches=tuple(spans.values()),
                )
            read = _reading(whole, spans[number])
            engine.data(number, batch.clock, batch.ranges, read, batch.watermark, batch.lookups)
    return panes


def sharing(batches: Sequence[Rerun]) -> Iterator[list[tuple[int, Rerun]]]:
    """Yield batches that share a job, each with its number: they look into the same versions of tables."""
    some: list[tuple[int, Rerun]] = []
    records, lookups_of = 0, None
    for number, batch in enumerate(batches):
        full = records >= RECORDS_TO_A_JOB or len(some) >= BATCHES_TO_A_JOB
        other = bool(batch.ranges) and lookups_of not in (None, batch.lookups)
        if some and (full or other):
            yield some
            some, records, lookups_of = [], 0, None
        some.append((number, batch))
        records += batch.records
        lookups_of = batch.lookups if batch.ranges else lookups_of
    if some:
        yield some


def _reading(whole: SharedReading, batch: Spans) -> Open:
    return lambda _intent: _Share(whole, batch, whole.stage)


def over_all(batches: Sequence[Spans]) -> tuple[Range, ...]:
    """Return for each partition the range over everything that batches read of it."""
    whole: dict[str, Range] = {}
    for span in (span for batch in batches for span in batch.ranges):
        known = whole.setdefault(span.name, span)
        whole[span.name] = replace(known, start=min(known.start, span.start), end=max(known.end, span.end))
    return tuple(whole.values())


@dataclass(frozen=True)
class _Share:
    """The records of one batch, as the engine reads them."""

    whole: SharedReading
    batch: Spans
    stage: ReadyStage

    def beside(self) -> Mapping[str, Reading]:
        """Return the same records as the other first stages read them."""
        return {other.plan.name: replace(self, stage=other) for other in self.whole.others}

    def partials(self) -> pa.Table:
        """Return the batch's share of what the job said."""
        return self.whole.share(self.batch, self.stage)

    def invalid(self) -> pa.Table:
        """Return nothing: how many they are is told by the partials."""
        return QUARANTINED.empty_table()

    def late(self, windows: pa.Table) -> pa.Table:
        """Return nothing: how many they are is told by the fold."""
        return pa.schema([*LATE, *self.stage.key]).empty_table()

    def ids(self) -> pa.Table:
        """Return the batch's share of the ids."""
        ids = self.whole.all_ids
        here = [
            pc.and_(
                pc.and_(
                    pc.equal(ids.column("_topic"), span.topic),
                    pc.equal(ids.column("_partition"), span.partition),
                ),
                pc.and_(
                    pc.greater_equal(ids.column("_offset"), span.start),
                    pc.less(ids.column("_offset"), span.end),
                ),
            )
            for span in self.batch.ranges
        ]
        return pa.concat_tables([ids.filter(chosen) for chosen in here])

    def without(self, repeats: pa.Table) -> "Reading":
        """Return the same records without repeats, by a job of their own where there are any."""
        return replace(self, whole=self.whole.alone(self.batch, repeats)) if repeats.num_rows else self
