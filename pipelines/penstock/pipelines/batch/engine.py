"""Runs the batches of one stream, each once, whatever happens between its steps.

1. The intent is written: clock, offsets, epoch.
2. Records are read and folded. Nothing of this is seen from outside.
3. Files are written that nothing names yet: the changed state, and the rows of each table.
4. The outcome is written, which names all of them: the batch is decided.
5. Each table takes its files in one commit, by (application, batch id).
6. The control store is told.

A run that was killed before 4 does the batch again, with the clock of its intent; one that was killed after it
does 5 and 6 again, which changes nothing that is there already.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from penstock.pipelines.batch.computing import Computed
from penstock.pipelines.batch.folding import folded, held, release, summary
from penstock.pipelines.batch.holding import Holding, Trees
from penstock.pipelines.batch.inputs import Reached, Rules
from penstock.pipelines.batch.intent import Intent, Range
from penstock.pipelines.batch.journal import KEPT, Journal
from penstock.pipelines.batch.options import PLAIN, Options
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.poison import Guard
from penstock.pipelines.batch.reading import (
    Identified,
    Reading,
    newest_times,
    nothing_read,
    readings_of,
)
from penstock.pipelines.batch.right import Right
from penstock.pipelines.batch.stopwatch import Stopwatch
from penstock.pipelines.batch.tables import Tables, panes_by_timing
from penstock.pipelines.errors import FencedError, JournalError
from penstock.pipelines.fold.graph import ReadyGraph
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.watermark import Watermark
from penstock.pipelines.host.work import working_on
from penstock.pipelines.repeats.ids import Sifted, nothing_sifted
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER
from penstock.pipelines.state.tree import Tree

log = logging.getLogger(__name__)

IDS = "/ids"
"""The name by which an outcome knows the files of remembered ids; the name of a table has no slash."""

Open = Callable[[Intent], Reading]
"""Opens the records of an intent."""


class Engine:
    """The batches of one stream. Its caller sees to it that one batch runs at a time."""

    def __init__(
        self,
        graph: ReadyGraph,
        rules: Rules,
        directory: Path,
        tables: Tables,
        right: Right,
        told: Callable[[Outcome], None],
        options: Options = PLAIN,
    ) -> None:
        self._graph = graph
        self._rules = rules
        self._tables = tables
        self._right = right
        self._told = told
        self._options = options
        self._memory = options.memory
        self._journal = Journal.of_writer(directory / "journal")
        self._holding = Holding(graph, directory / "state")
        self._guard = Guard(self._journal, right.stream, options.poison_limit, options.sent_again)
        self.last: Outcome | None = None

    def resume(self) -> None:
        """Take up where the journal ends: tell what is decided to tables and store, run a tick that was begun."""
        decided = self._journal.last_outcome()
        if decided is not None:
            self._adopt(decided)
            self._publish(decided)
            if decided.erased is not None:
                self._forget_before(decided.batch_id)  # what an erasure that was cut off left to do
        begun = self._begun()
        if begun is not None and begun.kind == "tick":
            self._run(begun, None)

    def data(
        self,
        spark_batch: int,
        clock: int,
        ranges: tuple[Range, ...],
        read: Open,
        watermark: int | None = None,
        lookups: Mapping[str, int] | None = None,
        *,
        unread: Collection[str] = (),
    ) -> None:
        """Run a batch of records, unless it is in the state already.

        Where a watermark is given it stands in place of the one that the records would make; it never goes back.
        Where versions of tables are given its lookups see these, else the newest. `unread` names partitions that
        nobody read for a while, or not to their end: that is not taken for silence.
        """
        if (
            self.last is not None
            and self.last.spark_batch is not None
            and spark_batch <= self.last.spark_batch
        ):
            return
        now, epoch = self._clock(clock), self._right.epoch
        seen = self._options.lookups() if lookups is None else lookups
        intent = Intent(
            self._next_id(), "data", now, epoch, ranges, spark_batch, watermark, seen, tuple(unread)
        )
        self._run(intent, read)

    def tick(self, clock: int, watermark: int | None = None, *, unread: Collection[str] = ()) -> None:
        """Run a batch without records, for what the clock, or a watermark that is given, brings about.

        Nothing is done while a batch of records that was begun is still to be run again: it comes first.
        Partitions in `unread`, of which records may wait to be read, are not taken for silent.
        """
        if self._begun() is None:
            now, epoch = self._clock(clock), self._right.epoch
            intent = Intent(self._next_id(), "tick", now, epoch, watermark=watermark, unread=tuple(unread))
            self._run(intent, None)

    @property
    def at(self) -> str:
        """The batch that was begun and is not decided, and its records; empty where there is none."""
        try:
            begun = self._begun()
        except JournalError:  # who asks is about to say so, and wants to know what else is known
            return ""
        return "" if begun is None else begun.in_words

    @property
    def state(self) -> Trees:
        """The state of each stage after the last batch that is decided."""
        return self._holding.trees

    def next_due(self) -> int:
        """The next clock at which a tick has something to do; NEVER where only records can change anything."""
        if self.last is None or self._begun() is not None:
            return NEVER
        by_clock, reached = self._holding.next_due(self.last.clock - 1), self.last.reached
        event = self._holding.next_event(reached.stream.value)
        idle = reached.next_idle(self._rules, self.last.clock)
        return min(by_clock, idle, reached.comes_to(self._rules, event))

    def _begun(self) -> Intent | None:
        """The batch after the last that is decided, where somebody began it."""
        return self._journal.intent(self._next_id())

    def _run(self, wanted: Intent, read: Open | None) -> None:
        with working_on(self._right.stream, wanted.batch_id):
            self._run_here(wanted, read)

    def _run_here(self, wanted: Intent, read: Open | None) -> None:
        self._right.check()
        self._follow_on(wanted)
        intent = self._journal.declare(wanted)
        if intent.epoch > self._right.epoch:
            raise FencedError(self._right.stream, self._right.epoch)
        if not intent.same_input(wanted):
            raise JournalError(
                self._journal.directory,
                f"batch {intent.batch_id} was begun with {intent.ranges}, and is now to be {wanted.ranges}",
                "Stop every other host of this stream, and start it again",
            )
        decided = self._decide(intent, read)
        self._right.check()
        self._publish(decided)
        log.debug("read %d, wrote %d rows", sum(each.read for each in decided.accounts), decided.rows)
        self._clean(decided.batch_id)

    def _follow_on(self, wanted: Intent) -> None:
        """Refuse records that do not begin where the last batch ended: some would be lost, or counted twice."""
        for span in wanted.ranges:
            end = span.start if self.last is None else self.last.ends.get(span.name, span.start)
            if span.start != end:
                raise JournalError(
                    self._journal.directory,
                    f"{span.name} was read up to {end}, and batch {wanted.batch_id} begins at {span.start}",
                    "Restore the checkpoint that belongs to this journal, or replay the stream into new tables",
                )

    def _decide(self, intent: Intent, read: Open | None) -> Outcome:
        watch = Stopwatch()
        given = nothing_read(self._graph.firsts) if read is None else read(intent)
        computed = self._guard.run(
            intent, given, lambda tried: self._computed(intent, tried, watch), Computed.release
        )
        reached, moment, done = computed.reached, computed.moment, computed.done
        watermark = reached.stream
        self._right.check()  # computing may have taken long, and a host that lost its right writes nothing more
        with watch.step("write"):
            written = computed.written(self._graph, intent)
            changes = self._tables.write(written, moment)
            try:
                state = self._holding.after(done.stages, intent.batch_id, done.runs)
                ids = self._remembered(computed.sifted, watermark, intent.batch_id)
            except Exception:
                self._tables.discard(changes)
                raise
        self._right.check()
        outcome = Outcome(
            batch_id=intent.batch_id,
            kind=intent.kind,
            clock=intent.clock,
            epoch=self._right.epoch,
            spark_batch=intent.spark_batch if intent.kind == "data" else self._last_spark_batch(),
            watermark=watermark,
            inputs=reached.inputs,
            ends=({} if self.last is None else dict(self.last.ends)) | {r.name: r.end for r in intent.ranges},
            state_files={name: tree.files() for name, tree in state.items()}
            | ({} if ids is None else {IDS: ids.files()}),
            changes=changes,
            accounts=written.accounts,
            panes=panes_by_timing(written.panes.values()),
            lag_records=self._options.behind(intent.ranges),
            state_rows=sum(tree.rows for tree in state.values()) + (0 if ids is None else ids.rows),
            state_sizes={name: {"rows": tree.rows, "bytes": tree.bytes} for name, tree in state.items()},
            durations_ms=watch.durations_ms,
            plan=self._options.fingerprint,
            placement=done.placement,
        )
        computed.release()
        decided = self._journal.decide(outcome)
        if decided.epoch > self._right.epoch:
            raise FencedError(self._right.stream, self._right.epoch)
        self._adopt(decided, *((state, ids) if decided is outcome else ()))
        return decided

    def _computed(self, intent: Intent, reading: Reading, watch: Stopwatch) -> Computed:
        """Read and fold some records. Changes nothing, so that it may be tried with others."""
        placement = self._options.placement
        with watch.step("read"):
            reading, sifted = self._sifted(reading)
            records = sum(span.end - span.start for span in intent.ranges)
            readings = readings_of(reading, self._graph.firsts)
            partials = held(readings, self._graph, placement, records)
        try:
            reached = self._reached(intent, [summary(each) for each in partials.values()])
            moment = self._moment(intent, reached.stream)
            with watch.step("fold"):
                done = folded(self._graph, self._holding, placement, partials, moment, intent.batch_id)
        except Exception:
            release(partials)
            raise
        return Computed(readings, sifted, partials, reached, moment, done)

    def _sifted(self, reading: Reading) -> tuple[Reading, Sifted]:
        """The records without those whose ids were seen before, where repeats are set aside."""
        if self._memory is None:
            return reading, nothing_sifted()
        if not isinstance(reading, Identified):
            raise TypeError(f"{type(reading).__name__} cannot tell the ids of its records")
        sifted = self._memory.sift(reading.ids())
        return reading.without(sifted.repeats), sifted

    def _remembered(self, sifted: Sifted, watermark: Watermark, batch_id: int) -> Tree | None:
        """The ids after the batch, where repeats are set aside; those that are over go."""
        if self._memory is None:
            return None
        before = BEFORE_ALL if self.last is None else self.last.watermark.value
        return self._memory.after(sifted, before, watermark.value, batch_id)

    def _publish(self, outcome: Outcome) -> None:
        self._tables.commit(outcome.batch_id, outcome.changes, outcome.clock)
        self._told(outcome)

    def _adopt(self, outcome: Outcome, state: Trees | None = None, ids: Tree | None = None) -> None:
        """Go on from an outcome: one's own, or one that was decided by somebody else."""
        self._holding.adopt(self._holding.opened(outcome.state_files) if state is None else state)
        if self._memory is not None:
            self._memory.adopt(outcome.state_files.get(IDS, ()), ids)
        self.last = outcome

    def _reached(self, intent: Intent, summaries: Iterable[pa.Table]) -> Reached:
        before = Reached(Watermark(), {}) if self.last is None else self.last.reached
        before = before.unread(intent.unread, intent.clock)
        known = [span.name for span in intent.ranges]
        newest = {name: time for found in summaries for name, time in newest_times(found).items()}
        found = before.advance(self._rules, known, newest, intent.clock)
        if intent.watermark is None:
            return found
        told = max(before.stream.value, intent.watermark)
        return replace(found, stream=replace(found.stream, value=told))

    def _moment(self, intent: Intent, watermark: Watermark) -> Moment:
        before = self.last
        return Moment(
            batch_id=intent.batch_id,
            clock_before=BEFORE_ALL if before is None else before.clock,
            clock=intent.clock,
            watermark_before=BEFORE_ALL if before is None else before.watermark.value,
            watermark=watermark.value,
            newest=max((mark.newest for mark in (watermark.marks or {}).values()), default=BEFORE_ALL),
        )

    def _clock(self, now: int) -> int:
        """The batch clock never goes back, whatever the machine's does."""
        return now if self.last is None else max(now, self.last.clock)

    def _next_id(self) -> int:
        return 0 if self.last is None else self.last.batch_id + 1

    def _last_spark_batch(self) -> int | None:
        return None if self.last is None else self.last.spark_batch

    def _clean(self, batch_id: int) -> None:
        """Forget what lies further back than anybody can go: now and then, for it means looking at folders."""
        # The file of a merge at work is named by no outcome yet: then the next time will do.
        if batch_id % KEPT == 0 and batch_id > KEPT and not self._holding.at_work():
            self._forget_before(batch_id - KEPT)

    def _forget_before(self, batch_id: int) -> None:
        self._journal.forget_before(batch_id)
        ids = () if self._memory is None else self._memory.files()
        there = [*self._holding.files(), *((IDS, path) for path in ids)]
        needed: dict[str, set[str]] = defaultdict(set)
        for outcome in self._journal.outcomes():
            for name, files in outcome.state_files.items():
                needed[name].update(files)
        # In this order: what a successor writes after this moment has names that are not among these.
        self._right.check()
        for name, path in there:
            if path.name not in needed[name]:
                path.unlink(missing_ok=True)
