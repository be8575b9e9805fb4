"""A stream's history run again beside it, and put in the place of what it wrote.

The history is run like stored records, into folders and tables of the replay's own, while the stream goes on. Then,
with the stream drained and its lease held, the rest is run, and every table takes over its replayed files in one
commit. The stream goes on from the replay's state. No record is counted twice, because nothing is added to what was
there: it is replaced.

Each step can be done again. Who is killed on the way begins the replay again by its name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.right import Right
from penstock.pipelines.batch.tables import LEDGER
from penstock.pipelines.errors import ReplayError
from penstock.pipelines.host.control import PartitionAccount
from penstock.pipelines.host.folders import begin_switch, end_switch, folder_of_stream, switching
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.spark.bounded import BoundedConfig, StoredRun, agreed, looked_up_parts
from penstock.pipelines.spark.recorded import Recorded, cut_by_clock, recorded
from penstock.pipelines.spark.stored import Stored
from penstock.pipelines.state.columns import BEFORE_ALL
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import delta_table, is_table
from penstock.pipelines.tables.places import own_tables, quarantines
from penstock.pipelines.tables.takeover import Whose, take_over
from penstock.pipelines.upgrade.stored import store_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "replay"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Places:
    """Where a stream lives, and where its replay does."""

    streams: Path
    warehouse: Place
    stream: str
    replay: str

    @property
    def folder(self) -> Path:
        """The replay's own folder, which becomes the stream's."""
        return self.streams / self.stream / self.replay

    @property
    def beside(self) -> Place:
        """The replay's own tables."""
        return self.warehouse / "runs" / self.stream / self.replay

    @property
    def live(self) -> Path:
        """The folder that the stream has now."""
        return folder_of_stream(self.streams, self.stream)


class Tail(msgspec.Struct):
    """What is left to read once the stream stands still, and when it was looked up.

    `recorded` is what the stream has read of it in batches that are to be run as they were.
    """

    clock: int
    ranges: list[Range]
    recorded: list[Recorded] = []


class Replay:
    """One replay of one stream. `run_history` may take hours; `finish` wants the stream to stand still."""

    def __init__(
        self,
        plan: Plan,
        session: "SparkSession",
        stored: Stored,
        places: Places,
        config: BoundedConfig,
        clock: Callable[[], int],
        tell: Tell = lambda _: None,
    ) -> None:
        if places.live == places.folder and not switching(places.streams, plan.name):
            raise ReplayError(
                plan.name, f"it goes on from replay {places.replay} already", "Give a new replay another name"
            )
        self._plan = plan
        self._stored = stored
        self._places = places
        self._clock = clock
        self._tell = tell
        self._journal = Journal(places.folder / "journal")
        self._by_clock = cut_by_clock(plan)
        self._most = config.records_per_batch
        self._inputs = agreed(plan, stored, config, clock, self._recorded if self._by_clock else None)
        self._run = StoredRun(plan, session, config, self._told)

    def refuse_to_forget(self) -> None:
        """Raise ReplayError where the stream's tables hold results of records before those that are replayed."""
        starts = {span.name: span.start for spans in reversed(self._inputs.batches) for span in spans}
        for name, first in first_offsets(self._places.warehouse, self._plan.name).items():
            if starts.get(name, first) > first:
                raise ReplayError(
                    self._plan.name,
                    f"its tables count {name} from offset {first}, and the replay begins at {starts[name]}",
                    "Begin earlier, as with --from archive, replay --beside, or say --drop-earlier to have the "
                    "tables begin there",
                )

    def run_history(self) -> None:
        """Run everything that was there when the replay was begun; the watermark waits before all of it.

        Of a stream whose windows go by the clock it is what the stream had read, batch by batch, each at its
        own moment, and the watermark is what it was.
        """
        if self._sealed() is None:
            for number, spans in enumerate(self._inputs.batches):
                at, seen = self._inputs.clock_of(number), self._inputs.seen(number)
                self._batch(number, at, spans, None if self._by_clock else BEFORE_ALL, seen)

    def _batch(
        self, number: int, at: int, spans: Sequence[Range], watermark: int | None, seen: Mapping[str, int]
    ) -> None:
        if self._by_clock:
            self._run.tick_until(at)
        self._run.batch(number, at, spans, self._stored, watermark, seen)

    def _recorded(self, ranges: Sequence[Range]) -> Sequence[Recorded]:
        """What the stream has read of some ranges, as it read it."""
        return recorded(self._plan, self._places.warehouse / "ledger" / self._plan.name, ranges, self._most)

    def finish(self, right: Right) -> Outcome:
        """Run what came since, and switch; the stream must stand still, and `right` is that to write it."""
        sealed = self._sealed() or self._seal(right)
        self._switch(sealed, right)
        end_switch(self._places.streams, self._plan.name, self._places.replay)
        return sealed

    def _sealed(self) -> Outcome | None:
        last = self._journal.last_outcome()
        return last if last is not None and last.kind == KIND else None

    def _seal(self, right: Right) -> Outcome:
        """Bring the replay to the end of what there is, and number its state after the stream's last batch."""
        tail = self._tail()
        rest = [
            (one.clock, spans, seen)
            for one in [*tail.recorded, Recorded(tail.clock, tail.ranges)]
            for spans, seen in looked_up_parts(self._plan, one.ranges, self._places.warehouse)
        ]
        for place, (at, spans, seen) in enumerate(rest, start=1):
            # Between two of its parts the watermark waits, as it does before all of it.
            waits = not self._by_clock and place < len(rest)
            number = len(self._inputs.batches) + place - 1
            self._batch(number, at, spans, BEFORE_ALL if waits else None, seen)
        right.check()
        store_plan(self._places.folder, self._plan)
        begin_switch(self._places.streams, self._plan.name, self._places.replay)
        live = Journal(self._places.live / "journal").last_outcome()
        before = max(self._run.last.batch_id, -1 if live is None else live.batch_id)
        return self._journal.decide(
            replace(
                self._run.last,
                batch_id=before + 1,
                kind=KIND,
                epoch=right.epoch,
                spark_batch=None,  # Spark begins to count anew
                changes={},
                panes={},
                accounts=(),  # the ledger tells of the batches that were run; this one read nothing
                lag_records=0,
                durations_ms={},
            )
        )

    def _tail(self) -> Tail:
        path = self._places.folder / "tail.json"
        if not path.exists():
            read = self._run.last.ends
            spans = [replace(s, start=read.get(s.name, s.start)) for s in self._stored.ranges()]
            had = list(self._recorded(spans)) if self._by_clock else []
            ends = {span.name: span.end for one in had for span in one.ranges}
            spans = [replace(s, start=ends.get(s.name, s.start)) for s in spans]
            partial = path.with_suffix(".partial")
            partial.write_bytes(msgspec.json.encode(Tail(self._clock(), spans, had)))
            partial.replace(path)
        return msgspec.json.decode(path.read_bytes(), type=Tail)

    def _switch(self, sealed: Outcome, right: Right) -> None:
        for path, mine in tables_of(self._plan).items():
            right.check()
            self._tell(f"switching {path}")
            beside = self._places.beside / path
            args = (self._plan.name, sealed.batch_id, self._clock())
            take_over(self._places.warehouse / path, beside, *args, whose=_ours(self._plan.name, mine))

    def _told(self, outcome: Outcome) -> None:
        self._tell(f"batch {outcome.batch_id + 1} of {len(self._inputs.batches)}")


def tables_of(plan: Plan) -> Mapping[str, bool]:
    """The tables that a stream writes, below the warehouse, and whether it is the only one that does."""
    return {**dict.fromkeys(own_tables(plan), True), **dict.fromkeys(quarantines(plan), False)}


def first_offsets(warehouse: Place, stream: str) -> Mapping[str, int]:
    """The first offset of each partition that a stream's tables tell of."""
    accounts = summed(warehouse / "ledger" / stream)
    return {f"{account.topic}/{account.partition}": account.start for account in accounts}


def _ours(stream: str, mine: bool) -> Whose | None:
    return None if mine else lambda name: name.startswith(f"{stream}-")


def summed(ledger: Place) -> tuple[PartitionAccount, ...]:
    """What a ledger says of each partition, over all batches."""
    if not is_table(ledger):
        return ()
    counted = [name for name in LEDGER.names if name not in ("topic", "partition", "start", "end")]
    rows = delta_table(ledger).to_pyarrow_table(columns=LEDGER.names)
    wanted: Sequence[tuple[str, str]] = [("start", "min"), ("end", "max"), *((n, "sum") for n in counted)]
    sums: pa.Table = rows.group_by(["topic", "partition"]).aggregate(list(wanted))
    return tuple(
        PartitionAccount(
            row["topic"],
            row["partition"],
            row["start_min"],
            row["end_max"],
            **{name: row[f"{name}_sum"] for name in counted},
        )
        for row in sorted(sums.to_pylist(), key=lambda row: (row["topic"], row["partition"]))
    )
