"""A micro-batch as the engine reads it: one job for the partials, and one more only where single records matter."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.batch.intent import Range
from penstock.pipelines.batch.poison import Poisoned
from penstock.pipelines.batch.reading import ACCOUNT_COLUMNS, CHECKED, LATE
from penstock.pipelines.batch.tables import QUARANTINED
from penstock.pipelines.fold.rows import numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.repeats.ids import IDS
from penstock.pipelines.spark.analysed import Analysed
from penstock.pipelines.spark.avro import Writers, refuse_unknown
from penstock.pipelines.spark.checks import (
    BREAKS,
    placed,
    refuse_stopping,
    refusing,
    seen_by,
    told,
    watch,
)
from penstock.pipelines.spark.identities import identified, marked
from penstock.pipelines.spark.implied import fetch, implied
from penstock.pipelines.spark.inputs import Sources, as_its_own
from penstock.pipelines.spark.key_checks import about_the_key, ask_groups
from penstock.pipelines.spark.lookups import Found, without_rows
from penstock.pipelines.spark.observation import observed, set_aside
from penstock.pipelines.spark.one_pass import (
    Frames,
    Schemas,
    accounted,
    fetched_together,
    weighed_together,
    with_the_rest,
)
from penstock.pipelines.spark.partials import go_by_the_clock, guarded, partials, windowed
from penstock.pipelines.spark.poison import said_by_user, spoiled, sums_in_words
from penstock.pipelines.spark.records import judged
from penstock.pipelines.spark.spreading import WeighedPartials, weighed
from penstock.pipelines.spark.steps import needs_steps, stepped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

Made = TypeVar("Made")
RECORDS = "/records"
"""What the account of records goes by among stages: the name of a stage has no slash."""
SMALL = 20_000
"""Records below which one task does the whole batch: starting more costs more than they save."""


@dataclass(frozen=True)
class SparkReading:
    """The records of one micro-batch of one or several topics."""

    raw: "DataFrame"
    sources: Sources
    stage: ReadyStage
    clock: int | str
    """The clock of the batch; of records of several batches, SQL that says it of each."""
    ranges: tuple[Range, ...]
    repeats: pa.Table | None = None
    poisoned: tuple[Poisoned, ...] = ()
    found: Found = without_rows
    """The rows of the tables that steps look into, at the versions that the batch sees."""
    counted: list[pa.Table] = field(default_factory=list, compare=False)
    """What was found of broken checks, once the partials were made."""
    others: tuple[ReadyStage, ...] = ()
    """Further stages that read records, in the same pass."""
    writers: Writers = field(default_factory=dict)
    """The schemas of inputs in Avro."""
    fetched: dict[str, pa.Table] = field(default_factory=dict, compare=False)
    """The partials of all stages by name, once they were made in one pass."""
    analysed: Analysed = field(default_factory=Analysed, compare=False)
    """What Spark knows of the stream's batches before this one."""

    def partials(self) -> pa.Table:
        """Run the batch's job, and fetch what it says."""
        name = self.stage.plan.name
        if self.others and not self.fetched:
            with sums_in_words():
                self.fetched.update(self._fetched_together())
        if name in self.fetched:
            return self.fetched[name]
        with sums_in_words():
            if self._is_as_ever:
                refuse_unknown(self.raw, self.writers)
                same = (name, self._is_small, *self._written)
                try:
                    return self._checked_as_ever(self.analysed.over(self.raw, same, self._as_ever))
                except Exception as problem:
                    # A sum may have become too great by records that are set aside: then each is asked by itself.
                    if not (said_by_user(problem) and refusing(placed(self.sources))):
                        raise
            return self._checked(lambda records, seen: self._partials(self._in_tasks(records), seen))

    def beside(self) -> "dict[str, SparkReading]":
        """The same records as the other stages read them; the partials of all come with this one's."""
        return {other.plan.name: replace(self, stage=other, others=()) for other in self.others}

    def broken(self) -> pa.Table:
        """Say how many records break each check."""
        return self.counted[-1] if self.counted else CHECKED.empty_table()

    def weigh(self) -> dict[str, WeighedPartials]:
        """Run the batch's job, and leave what it makes in the executors."""
        with sums_in_words():
            if self.others:
                return self._weighed_together()
            return {self.stage.plan.name: self._checked(self._weighed)}

    def invalid(self) -> pa.Table:
        """Fetch the records that are no good, byte for byte as they are in the topic."""
        bad = self._records(bytes_too=True).where("_invalid IS NOT NULL")
        chosen = bad.selectExpr(
            "_topic AS topic",
            "_partition AS partition",
            "_offset AS offset",
            "_arrived AS arrived",
            "_key AS key",
            "_value AS value",
            "_invalid AS reason",
        )
        return _in_order(chosen.toArrow().select(QUARANTINED.names).cast(QUARANTINED))

    def late(self, windows: pa.Table) -> pa.Table:
        """Fetch the records of the windows named."""
        good = windowed(self._stepped(self._records()), self.stage)
        refused = self.raw.sparkSession.createDataFrame(windows)
        same = [good[name].eqNullSafe(refused[name]) for name in windows.column_names]
        ours = {*windows.column_names[-2:], *(name for name in good.columns if name.startswith("_"))}
        fields = ", ".join(quoted(name) for name in good.columns if name not in ours)
        found = good.join(refused.hint("broadcast"), same, "left_semi").selectExpr(
            "_topic AS topic",
            "_partition AS partition",
            "_offset AS offset",
            "_time AS event_time",
            "window_start",
            "window_end",
            f"to_json(struct({fields})) AS record",
            *(quoted(field.name) for field in self.stage.key),
        )
        schema = pa.schema([*LATE, *self.stage.key])
        return _in_order(found.toArrow().select(schema.names).cast(schema))

    def ids(self) -> pa.Table:
        """Fetch the ids of good records; nothing where repeats are not set aside."""
        tables = [IDS.empty_table()]
        for source in self.sources:
            if source.deduplication is not None:
                read = self._records().where(f"_topic = '{topic_of(source)}'")
                ours = as_its_own(read, source, self.sources)
                tables.append(fetch(identified(ours, source, source.deduplication), IDS, {}))
        return pa.concat_tables(tables)

    def without(self, repeats: pa.Table) -> "SparkReading":
        """The same records, of which these are set aside as repeats."""
        return replace(self, repeats=repeats, fetched={}) if repeats.num_rows else self

    def _partials(self, records: "DataFrame", seen: "Observation | None") -> pa.Table:
        schema = _schema(self.stage)
        if not self._has_steps:
            return self._told(records, seen)
        known, counts = observed(records, self.ranges, seen)
        passed = self._told(self._stepped(known))
        return pa.concat_tables([passed, set_aside(self.ranges, counts.get, passed, schema)])

    def _told(self, records: "DataFrame", seen: "Observation | None" = None) -> pa.Table:
        """Fetch the partials of records that are ready to be folded."""
        return self._fetched(partials(records, self.stage, seen=seen), records.columns)

    def _as_ever(self, raw: "DataFrame") -> "DataFrame":
        """The partials of a batch about which nothing is special, whatever its clock."""
        read = judged(raw, self.sources, self.writers)
        later = about_the_key(read, self.stage, self.sources)
        if later:
            read = judged(raw, self.sources, self.writers, later=later)
        records = self._in_tasks(guarded(read, self.sources, clock=0))
        told = partials(records, self.stage, breaks=bool(placed(self.sources)))
        return ask_groups(told, later, self.stage, self.sources)

    def _checked_as_ever(self, made: "DataFrame") -> pa.Table:
        """Fetch what `_as_ever` made; of what records break each row says its part."""
        if not placed(self.sources):
            return self._fetched(made, ())
        told_of = fetch(made, _schema(self.stage).append(pa.field(BREAKS, pa.int64())), {})
        self._judge(int(np.bitwise_or.reduce(numpy_column(told_of.column(BREAKS)), initial=0)))
        return told_of.drop_columns([BREAKS])

    def _fetched(self, made: "DataFrame", columns: Collection[str]) -> pa.Table:
        """Fetch partials that were made of records with these columns."""
        topics, again = {span.topic for span in self.ranges}, self.repeats is not None
        missing = implied(self.stage, self.sources, topics, columns, repeats=again)
        return fetch(made, _schema(self.stage), missing)

    def _fetched_together(self) -> dict[str, pa.Table]:
        """Run one job for all stages, and fetch what they make."""
        told_of = self._in_one_pass(fetched_together)
        records = told_of.pop(RECORDS)
        return {name: self._whole(name, told, records) for name, told in told_of.items()}

    def _weighed_together(self) -> dict[str, WeighedPartials]:
        """Run one job for all stages, and leave what they make in the executors."""
        made = self._in_one_pass(weighed_together)
        records = made.pop(RECORDS).summary
        return {
            name: replace(each, summary=self._whole(name, each.summary, records))
            for name, each in made.items()
        }

    def _whole(self, name: str, told: pa.Table, records: pa.Table) -> pa.Table:
        """What is told of a stage, with what kept records of its topics from it."""
        stage = next(each for each in (self.stage, *self.others) if each.plan.name == name)
        return with_the_rest(told, records, self._topics(stage), told.schema)

    def _in_one_pass(self, run: "Callable[[Frames, Schemas], dict[str, Made]]") -> "dict[str, Made]":
        """Run one job for all stages: records are kept in memory meanwhile, unless they are few."""
        records = self._in_tasks(self._records())
        known = records if self._is_small else records.persist()
        seen = watch(self.sources)
        stages = {each.plan.name: each for each in (self.stage, *self.others)}
        schemas = {name: _schema(stage) for name, stage in stages.items()}
        frames = {
            name: partials(stepped(known, stage.plan, self.sources, self.found), stage)
            for name, stage in stages.items()
        }
        try:
            made = run(
                {RECORDS: accounted(known, seen=seen), **frames}, {RECORDS: ACCOUNT_COLUMNS, **schemas}
            )
            self._judge(seen_by(seen))
        finally:
            if known is not records:
                known.unpersist()
        return made

    def _topics(self, stage: ReadyStage) -> list[str]:
        return [topic_of(source) for source in self.sources if source.name in stage.plan.inputs]

    def _weighed(self, records: "DataFrame", seen: "Observation | None") -> WeighedPartials:
        schema = _schema(self.stage)
        if not self._has_steps:
            return weighed(partials(records, self.stage, seen=seen), schema)
        known, counts = observed(records, self.ranges, seen)
        made = weighed(partials(self._stepped(known), self.stage), schema)
        aside = set_aside(self.ranges, counts.get, made.summary, ACCOUNT_COLUMNS)
        return replace(made, summary=pa.concat_tables([made.summary, aside]))

    def _checked(self, run: "Callable[[DataFrame, Observation | None], Made]") -> "Made":
        """Run the batch's job, with what is to see which checks its records break, and say what they break."""
        seen = watch(self.sources)
        made = run(self._records(), seen)
        self._judge(seen_by(seen))
        return made

    def _judge(self, broken: int | None) -> None:
        """Say what records break, once they were read; raise where that stops the stream."""
        if placed(self.sources):
            self.counted.append(told(broken, self._records, self.sources))
            refuse_stopping(self.broken(), self._records, self.sources)

    def broke(self, problem: BaseException) -> str:
        """What one's own code said when it broke; empty where the problem is another."""
        return said_by_user(problem)

    def only(self, spans: tuple[Range, ...]) -> "SparkReading":
        """The records of these ranges alone."""
        chosen = " OR ".join(
            f"(topic = '{s.topic}' AND partition = {s.partition} AND offset >= {s.start} AND offset < {s.end})"
            for s in spans
        )
        return replace(self, raw=self.raw.where(chosen), ranges=spans, counted=[], fetched={})

    def setting_aside(self, poisoned: Sequence[Poisoned]) -> "SparkReading":
        """The same records, of which these are no good."""
        return replace(self, poisoned=tuple(poisoned), counted=[], fetched={})

    @property
    def _has_steps(self) -> bool:
        return needs_steps(self.stage.plan, self.sources)

    @property
    def _is_as_ever(self) -> bool:
        """Whether what is done with the records is the same as in every batch of the stream."""
        by_clock = self.stage.by_the_clock or go_by_the_clock(self.sources) or not isinstance(self.clock, int)
        special = self.repeats is not None or bool(self.poisoned)
        own_code = self._has_steps or any(part.finish is not None for part in self.stage.parts)
        single = self.stage.in_order and bool(
            placed(self.sources)
        )  # what each record breaks need not be fetched
        return not (by_clock or special or own_code or single)

    @property
    def _written(self) -> list[tuple[str, ...]]:
        """By which schemas records in Avro were written, as far as that is known now."""
        return [(topic, *map(str, known.schemas)) for topic, known in self.writers.items()]

    @property
    def _is_small(self) -> bool:
        return sum(span.end - span.start for span in self.ranges) <= SMALL

    def _stepped(self, records: "DataFrame") -> "DataFrame":
        """Records that are not set aside, after the user's steps."""
        return stepped(records, self.stage.plan, self.sources, self.found)

    def _in_tasks(self, records: "DataFrame") -> "DataFrame":
        return records.coalesce(1) if self._is_small else records

    def _records(self, *, bytes_too: bool = False) -> "DataFrame":
        read = guarded(self._judged(bytes_too=bytes_too), self.sources, self.clock)
        return marked(read, self.repeats) if self.repeats is not None else read

    def _judged(self, *, bytes_too: bool) -> "DataFrame":
        def make(raw: "DataFrame") -> "DataFrame":
            return judged(raw, self.sources, self.writers, bytes_too=bytes_too)

        refuse_unknown(self.raw, self.writers)
        return spoiled(
            self.analysed.over(self.raw, (RECORDS, bytes_too, *self._written), make), self.poisoned
        )


def _schema(stage: ReadyStage) -> pa.Schema:
    """What partials of a stage have."""
    return pa.schema([*ACCOUNT_COLUMNS, *stage.partial_columns])


def _in_order(rows: pa.Table) -> pa.Table:
    """By address, so that a batch that is run again writes the same file."""
    keys = ("topic", "partition", "offset", "window_start")
    return rows.sort_by([(name, "ascending") for name in keys if name in rows.column_names])
