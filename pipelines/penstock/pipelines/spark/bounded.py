"""A pipeline over records that are there already: the same engine, and an end at which nothing is to come.

The input may be cut into several batches, so that none needs more memory than there is. The watermark stays
before all until the last of them and is infinite then, so nothing is late, and values do not depend on the cuts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.pipelines.batch.engine import Engine
from penstock.pipelines.batch.inputs import rules_of
from penstock.pipelines.batch.intent import Intent, Range
from penstock.pipelines.batch.lookups import parted, recorded
from penstock.pipelines.batch.options import Options
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.placement import BUDGET_BYTES, Placement
from penstock.pipelines.batch.poison import SentAgain, nothing_sent_again
from penstock.pipelines.batch.reading import Reading
from penstock.pipelines.batch.right import Right
from penstock.pipelines.batch.tables import StreamTables
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.graph import ready_graph
from penstock.pipelines.plan.codec import fingerprint
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.repeats.memory import memory_of
from penstock.pipelines.spark.avro import Schemas, no_registry, writers_of
from penstock.pipelines.spark.fields import FieldTypes
from penstock.pipelines.spark.reading import SparkReading
from penstock.pipelines.spark.recorded import Recorded, cut_by_clock
from penstock.pipelines.spark.spreading import SparkSpreader
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.spark.stored.pieces import pieces
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER
from penstock.pipelines.store import Place
from penstock.pipelines.tables.lookup import LookedUp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class BoundedConfig:
    """Where a run keeps and writes: folders of its own, for a live stream's tables take that stream's batches."""

    directory: Path
    warehouse: Place
    records_per_batch: int | None = None
    driver_budget: int = BUDGET_BYTES
    """As of a live stream."""
    poison_limit: int = 0
    sent_again: SentAgain = nothing_sent_again
    schemas: Schemas = field(default=no_registry, repr=False)
    live: Place | None = None
    """The warehouse of the live stream, where this one is another: its tables are looked into, as it saw them."""

    @property
    def looked_into(self) -> Place:
        """The warehouse of tables that steps look into, and of what live batches saw of them."""
        return self.warehouse if self.live is None else self.live


@dataclass(frozen=True)
class Inputs:
    """What a run reads and when it began, written down at first: a run that is resumed goes by it."""

    clock: int
    plan: str
    batches: list[list[Range]]
    lookups: list[dict[str, int]] = field(default_factory=list)
    """The versions of tables that each batch sees; none where nothing is looked up."""
    clocks: list[int] = field(default_factory=list)
    """The moment of each batch, where they are batches of a stream and run as it had them."""

    def seen(self, number: int) -> dict[str, int]:
        """What a batch sees."""
        return self.lookups[number] if self.lookups else {}

    def clock_of(self, number: int) -> int:
        """At which moment a batch happens."""
        return self.clocks[number] if self.clocks else self.clock


def run_bounded(
    plan: Plan,
    session: "SparkSession",
    stored: Stored,
    config: BoundedConfig,
    clock: Callable[[], int],
    told: Callable[[Outcome, int], None] = lambda _outcome, _batches: None,
) -> Outcome:
    """Run every batch that has not been run yet, and return the last one's outcome.

    A run that was killed goes on where it was when it is run again with the same folders; one that is over
    changes nothing. `told` hears of each batch, and of how many there are.
    """
    refuse_clocks(plan)
    inputs = agreed(plan, stored, config, clock)
    count = len(inputs.batches)
    run = StoredRun(plan, session, config, lambda outcome: told(outcome, count))
    for number, spans in enumerate(inputs.batches):
        ends = NEVER if number + 1 == count else BEFORE_ALL
        run.batch(number, inputs.clock, spans, stored, ends, inputs.seen(number))
    return run.last


class StoredRun:
    """An engine over stored records, and the batches that it is given of them."""

    def __init__(
        self, plan: Plan, session: "SparkSession", config: BoundedConfig, told: Callable[[Outcome], None]
    ) -> None:
        self._plan = plan
        self._graph = ready_graph(plan, FieldTypes(session).of(plan))
        self._looked_up = LookedUp(plan.lookups, config.looked_into)
        self._schemas = config.schemas
        self._engine = Engine(
            self._graph,
            rules_of(plan.sources),
            config.directory,
            StreamTables(plan, self._graph, config.warehouse),
            Right(plan.name, 1, lambda: True),
            told,
            Options(
                fingerprint=fingerprint(plan),
                memory=memory_of(plan, config.directory / "ids"),
                placement=Placement(config.driver_budget, SparkSpreader(session)),
                poison_limit=config.poison_limit,
                sent_again=config.sent_again,
            ),
        )
        self._engine.resume()

    @property
    def last(self) -> Outcome:
        """The newest batch; there is one from the first call of `batch` on."""
        assert self._engine.last is not None
        return self._engine.last

    def batch(
        self,
        number: int,
        clock: int,
        spans: Sequence[Range],
        stored: Stored,
        watermark: int | None,
        seen: Mapping[str, int],
    ) -> None:
        """Run a batch, unless it was run before. Without a watermark it is what the records make of it."""
        ranges = tuple(spans)

        def read(intent: Intent) -> Reading:
            records, found = stored.records(ranges), self._looked_up.at(intent.lookups)
            return SparkReading(
                records,
                self._plan.sources,
                self._graph.first,
                intent.clock,
                ranges,
                found=found,
                others=self._graph.firsts[1:],
                writers=writers_of(self._plan.sources, self._schemas),
            )

        self._engine.data(number, clock, ranges, read, watermark, seen)

    def tick(self, clock: int, watermark: int | None = None) -> None:
        """Run a batch without records; a watermark that is given stands in place of the one before."""
        self._engine.tick(clock, watermark)

    def tick_until(self, clock: int) -> None:
        """Have happen what the clock alone brings before a moment."""
        while (last := self._engine.last) is not None and last.clock < clock:
            due = max(self._engine.next_due(), last.clock + 1)  # what was due at its moment was done then
            if due > clock:
                return
            self._engine.tick(due)


def refuse_clocks(plan: Plan) -> None:
    """Refuse what the clocks of a live run have cut: it cannot be found again from records."""
    if cut_by_clock(plan):
        raise DefinitionError(
            "window",
            "it is cut by the clock, and stored records do not say when they came",
            "A stream's own history is run again, as its ledger tells it, by `penstock stream replay` without "
            "--beside; for other records choose windows of event time or by count, delta or punctuation, or timers "
            "of event time",
        )


def looked_up_parts(
    plan: Plan, ranges: Sequence[Range], warehouse: Place
) -> list[tuple[Sequence[Range], Mapping[str, int]]]:
    """Cut ranges where the live stream saw another version of a table, and say which; all else sees the newest."""
    steps = plan.lookups
    if not steps:
        return [(ranges, {})]
    newest = LookedUp(steps, warehouse).versions()
    parts = parted(ranges, recorded(warehouse, plan.name))
    return [(part.ranges, {**newest, **(part.versions or {})}) for part in parts]


def nothing_of(ranges: Sequence[Range], clock: int) -> Recorded:
    """A batch that reads nothing, and says where the ranges begin."""
    return Recorded(clock, [replace(span, end=span.start) for span in ranges])


def agreed(
    plan: Plan,
    stored: Stored,
    config: BoundedConfig,
    clock: Callable[[], int],
    before: Callable[[Sequence[Range]], Sequence[Recorded]] | None = None,
) -> Inputs:
    """Return what the run reads: as it was written down, or as it is found now and is written down.

    Where `before` says which batches a stream made of these records, they are run as it had them.
    """
    path = config.directory / "inputs.json"
    if not path.exists():
        ranges, now = stored.ranges(), clock()
        had = [Recorded(now, list(ranges))] if before is None else before(ranges) or [nothing_of(ranges, now)]
        most = config.records_per_batch if before is None else None
        cut = [
            (one.clock, piece, seen)
            for one in had
            for part, seen in looked_up_parts(plan, one.ranges, config.looked_into)
            for piece in pieces(part, most)
        ]
        found = Inputs(
            now,
            fingerprint(plan),
            [list(piece) for _, piece, _ in cut],
            [dict(seen) for _, _, seen in cut],
            [] if before is None else [at for at, _, _ in cut],
        )
        config.directory.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(found))
        partial.replace(path)
    inputs = msgspec.json.decode(path.read_bytes(), type=Inputs)
    if inputs.plan != fingerprint(plan):
        raise DefinitionError(
            "run", f"{config.directory} holds a run of another definition", "Give this run another name"
        )
    return inputs
