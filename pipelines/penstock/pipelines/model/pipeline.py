"""The pipeline as a person writes it: the four questions, in any order, each answered once.

Nothing runs and nothing is imported of Spark; `plan` is where a definition is checked as a whole.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, get_args

from penstock.ingestion.contracts import Contract
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model.conditions import condition as condition_of
from penstock.pipelines.model.durations import Duration, milliseconds
from penstock.pipelines.model.graph import plan_of
from penstock.pipelines.model.inputs import Input, Panes, Readable, Repeats
from penstock.pipelines.model.joining import Joining
from penstock.pipelines.model.when import When
from penstock.pipelines.passing import Nothing, each_record
from penstock.pipelines.plan.aggregates import Aggregate, Output
from penstock.pipelines.plan.checks import called_as_a_place, of_kind, one_of, require
from penstock.pipelines.plan.custom import opaque
from penstock.pipelines.plan.joins import KINDS
from penstock.pipelines.plan.predicates import Unmet
from penstock.pipelines.plan.relaying import Published, Relayed
from penstock.pipelines.plan.remembering import NamedOutput, Remembering, TellingOrder, state_type
from penstock.pipelines.plan.sinks import CompleteTable, FinalPanes, LatestValues, PaneLog, Sink
from penstock.pipelines.plan.source import Column
from penstock.pipelines.plan.stage import DEFAULT, Accumulation, FinalPane, OnTimePane, Plan
from penstock.pipelines.plan.steps import Apply, Keep, Lookup, OverArrow, PerRow, Select, Sql, Step
from penstock.pipelines.plan.triggers import A_TRIGGER, Trigger
from penstock.pipelines.plan.windows import Window
from penstock.pipelines.remembering import Answer, Call

if TYPE_CHECKING:  # it brings Arrow, which a definition does not need
    from penstock.pipelines.vectorised import Answers, Calls

SINKS: dict[str, Callable[[str], Sink]] = {
    "latest": LatestValues,
    "log": PaneLog,
    "final": FinalPanes,
    "complete": CompleteTable,
}


A_STAGE = "Give what read(...) begins, as in read('sensors')"
A_TOPIC = "Name a topic that has a contract, as in read('sensors')"


@dataclass(frozen=True)
class Pipeline:
    """A definition in the making; every method returns a new one."""

    inputs: tuple[Readable, ...]
    repeats: Repeats | None = None
    steps: tuple[Step, ...] = ()
    keys: tuple[str, ...] | None = None
    outputs: tuple[Output, ...] | None = None
    where: Window | None = None
    when: When | None = None
    how: str | None = None
    sinks: tuple[Sink, ...] = ()
    topics: tuple[Published, ...] = ()
    over: "tuple[Pipeline, ...]" = ()
    """The pipelines whose panes it reads in place of inputs."""
    called: str | None = None
    tails: "tuple[Pipeline, ...]" = ()
    """Other ends of the same graph."""
    parts: "tuple[Pipeline, ...]" = ()
    """What is united in place of inputs, each with steps of its own."""
    joining: Joining | None = None

    def then(self, *others: "Pipeline") -> "Pipeline":
        """Begin a stage that reads the panes of this one, and of others beside it, as changes in the same batch."""
        for each in others:
            of_kind(each, Pipeline, "then", A_STAGE)
        return Pipeline((), over=(self, *others))

    def named(self, name: str) -> "Pipeline":
        """Name the stage; otherwise it goes by its first table, or by its number in the pipeline."""
        once(self.called, "name")
        called_as_a_place(name, "name")
        return replace(self, called=name)

    def also(self, *ends: "Pipeline") -> "Pipeline":
        """Let other ends run in the same batches: of this graph, or of another that may read the same topics."""
        for each in ends:
            of_kind(each, Pipeline, "also", A_STAGE)
        return replace(self, tails=(*self.tails, *ends))

    def deduplicate(self, by: str | list[str] | None = None, within: Duration = "1 hour") -> "Pipeline":
        """Set aside records whose id was seen within the horizon; the contract's id tells unless `by` does."""
        once(self.repeats, "deduplicate")
        fields = None if by is None else names_of(by, "deduplicate.by")
        return replace(self, repeats=Repeats(fields, within))

    def apply(self, function: Callable[..., Any], version: str | None = None) -> "Pipeline":
        """Add a step from DataFrame to DataFrame; `version` stands for its code in the plan's fingerprint."""
        require(callable(function), "apply", repr(function), "Give a function from DataFrame to DataFrame")
        return replace(self, steps=(*self.steps, Apply(opaque(function, version))))

    def sql(self, text: str) -> "Pipeline":
        """Add a step in SQL: a SELECT over `input`."""
        return replace(self, steps=(*self.steps, Sql(text)))

    def arrow(self, function: Callable[..., Any], version: str | None = None) -> "Pipeline":
        """Add a step from Arrow table to Arrow table; it keeps the columns `_*` of the rows that it keeps."""
        require(
            callable(function), "arrow", repr(function), "Give a function from pyarrow.Table to pyarrow.Table"
        )
        return replace(self, steps=(*self.steps, OverArrow(opaque(function, version))))

    def lookup(self, table: str, *, on: str | Sequence[str], columns: Mapping[str, str]) -> "Pipeline":
        """Add columns of a Delta table to each record, by fields that both have; nulls where it has no such row.

        `table` is a path below the warehouse, as in `latest/cards`, or an address; `columns` names what is wanted,
        with types in Spark's words. Which version a batch sees is written down before the batch has any effect.
        """
        fields = names_of(on, "lookup.on")
        wanted = columns_of(columns, "lookup.columns")
        return replace(self, steps=(*self.steps, Lookup(table, fields, wanted)))

    def filter(self, condition: str) -> "Pipeline":
        """Let those go on that meet a condition, such as `kind = 'end' and speed > 50`."""
        return replace(self, steps=(*self.steps, Keep(condition_of(condition, "filter"))))

    def select(self, *columns: str, **named: str) -> "Pipeline":
        """Go on with these columns alone, some under another name, as in `.select("user", bid_price="price")`."""
        for name in (*columns, *named.values()):
            of_kind(name, str, "select", "Name columns, as in select('user', paid='amount')")
        pairs = ((name, name) for name in columns)
        return replace(self, steps=(*self.steps, Select((*pairs, *named.items()))))

    def map(
        self, function: Callable[..., Any], returns: Mapping[str, str], version: str | None = None
    ) -> "Pipeline":
        """Make one row of each, by a function from dict to dict; `returns` names its columns and their types."""
        return self._per_row(function, returns, version, many=False)

    def flat_map(
        self, function: Callable[..., Any], returns: Mapping[str, str], version: str | None = None
    ) -> "Pipeline":
        """Make any number of rows of each, by a function from dict to dicts; `returns` is as in map."""
        return self._per_row(function, returns, version, many=True)

    def _per_row(
        self, function: Callable[..., Any], returns: Mapping[str, str], version: str | None, *, many: bool
    ) -> "Pipeline":
        word = "flat_map" if many else "map"
        require(
            callable(function), word, repr(function), "Give a function of one row, which it has as a dict"
        )
        columns = columns_of(returns, f"{word}.returns")
        return replace(self, steps=(*self.steps, PerRow(opaque(function, version), columns, many)))

    def branches(self, *conditions: str) -> "tuple[Pipeline, ...]":
        """Part the records: each goes to the first branch whose condition it meets, the rest to a last one."""
        require(
            len(conditions) > 0,
            "branches",
            "no condition",
            "Write conditions, as in branches('amount > 100')",
        )
        found = [condition_of(text, "branches") for text in conditions]
        rest = self
        parted = []
        for each in found:
            parted.append(replace(rest, steps=(*rest.steps, Keep(each))))
            rest = replace(rest, steps=(*rest.steps, Keep(Unmet(each))))
        return (*parted, rest)

    def key(self, *fields: str) -> "Pipeline":
        """Group by these fields."""
        once(self.keys, "key")
        for field in fields:
            of_kind(field, str, "key", "Name fields one after the other, as in key('device', 'site')")
        return replace(self, keys=fields)

    def aggregate(self, **outputs: Aggregate) -> "Pipeline":
        """Say what is computed: a column's name, and the aggregate in it."""
        once(self.outputs, "aggregate")
        return replace(self, outputs=tuple(Output(name, of) for name, of in outputs.items()))

    def remember(
        self,
        function: "Callable[[Call[Any]], Answer[Any]] | Callable[[Calls], Answers]",
        *,
        state: type[Any],
        returns: Mapping[str, str],
        forget_after: Duration | None = None,
        vectorised: bool = False,
        clock: bool = False,
        outputs: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        version: str | None = None,
        order: str = "arrival",
    ) -> "Pipeline":
        """Hand a key's records, in their order, to a function with a memory: in the place of aggregate and window.

        `state` is what it remembers, a dataclass or a type of msgspec; `returns` names the columns of its rows,
        with their types in Spark's words. See `penstock.pipelines.remembering`. A `vectorised` function gets all
        keys of a batch at once, in Arrow: see `penstock.pipelines.vectorised`. One that sets timers of the batch
        clock says `clock=True`: it cannot run over stored records, which do not say when they came. `outputs` are
        further places for rows, by name, with columns of their own: `write(..., output=name)` says where each goes.
        In the `order` of "event_time" records wait for the watermark, and timers come between them where they lie.
        """
        require(callable(function), "remember", repr(function), "Give a function from Call to Answer")
        of_kind(state, type, "remember.state", "Give the class of what it remembers, a dataclass as a rule")
        columns = columns_of(returns, "remember.returns")
        fix = "Write names and columns, as in outputs={'refused': {'reason': 'STRING'}}"
        of_kind(outputs, Mapping, "remember.outputs", fix)
        others = tuple(
            NamedOutput(output, columns_of(found, f"remember.outputs.{output}"))
            for output, found in outputs.items()
        )
        after = None if forget_after is None else milliseconds(forget_after, "remember.forget_after")
        told = cast("TellingOrder", order)
        found = Remembering(
            opaque(function, version), state_type(state), columns, after, vectorised, clock, others, told
        )
        once(self.where, "window")
        once(self.outputs, "aggregate")
        return replace(self, where=found, outputs=())

    def rows(self, returns: Mapping[str, str]) -> "Pipeline":
        """Take each record for a row, with these columns and types: in the place of aggregate and window.

        Such a stage keeps nothing and waits for nothing; its rows go to a log, beside the key where there is one.
        """
        return self.remember(each_record, state=Nothing, returns=returns, vectorised=True, version="1")

    def window(self, window: Window) -> "Pipeline":
        """Say where in event time results belong."""
        once(self.where, "window")
        of_kind(window, Window, "window", "Give a window, as in fixed('1 minute') or sessions('10 minutes')")
        return replace(self, where=window)

    def trigger(
        self,
        trigger: Trigger = DEFAULT,
        *,
        lateness: Duration | None = None,
        may_finish: bool = False,
        on_time_pane: str = "always",
        final_pane: str | None = None,
    ) -> "Pipeline":
        """Say when panes appear, and how late a record may come and still correct them.

        Without a lateness it is none; of a later stage it is that of the stages which it reads. Without a
        `final_pane` it is never, but for tables of final panes always.
        """
        once(self.when, "trigger")
        of_kind(trigger, Trigger, "trigger", A_TRIGGER)
        allowed = None if lateness is None else milliseconds(lateness, "trigger.lateness")
        on_time, final = cast("OnTimePane", on_time_pane), cast("FinalPane | None", final_pane)
        return replace(self, when=When(trigger, allowed, may_finish, on_time, final))

    def refine(self, how: str) -> "Pipeline":
        """Say how panes of a window relate: discarding, accumulating or retracting."""
        once(self.how, "refine")
        one_of(how, get_args(Accumulation), "refine")
        return replace(self, how=how)

    def write(self, table: str, mode: str = "latest", output: str | None = None) -> "Pipeline":
        """Say where results go: the `latest` value per window, a `log` of panes, `final` panes, or `complete`.

        `output` is one of those that a function with a memory declares; its rows go to a log.
        """
        one_of(mode, tuple(SINKS), "write.mode")
        fix = "Write mode='log': rows of a function stand by themselves"
        require(output is None or mode == "log", "write.output", f"{output}, with mode {mode}", fix)
        sink = SINKS[mode](table) if output is None else PaneLog(table, output)
        return replace(self, sinks=(*self.sinks, sink))

    def publish(self, topic: str) -> "Pipeline":
        """Say that panes go to a Kafka topic as well, with their changes: what `read_panes` reads."""
        return replace(self, topics=(*self.topics, Published(topic)))

    @property
    def plan(self) -> Plan:
        """Return the checked plan, named after the first table."""
        return self.to_plan(self.sinks[0].table if self.sinks else "unnamed")

    def to_plan(self, name: str) -> Plan:
        """Return the checked plan under this name."""
        try:
            return plan_of(name, self)
        except DefinitionError as problem:
            raise problem.located(problem.where or f"pipeline {name}") from None


def read(
    *topics: str | Contract,
    event_time: str | None = None,
    bound: Duration | None = None,
    idle_after: Duration | None = None,
    advance_when_idle: bool = False,
    max_ahead: Duration | None = None,
    ahead: str = "quarantine",
    files: str | None = None,
    format: str = "delta",  # noqa: A002  # the word that people know for it
    tombstones: str | None = None,
) -> Pipeline:
    """Begin a pipeline: topics by the name of their contract; what is given here goes before what it says.

    With `files`, records of the contract are read from there instead of from Kafka. `tombstones` names a column
    that is true for records without a value: these have a key and Kafka's time, and are set aside without it.
    """
    require(len(topics) > 0, "read", "no topic", A_TOPIC)
    for topic in topics:
        of_kind(topic, str | Contract, "read", A_TOPIC)
    options = (event_time, bound, idle_after, advance_when_idle, max_ahead, ahead, files, format, tombstones)
    return Pipeline(tuple(Input(topic, *options) for topic in topics))


def union(*parts: Pipeline) -> Pipeline:
    """Unite inputs, each after steps of its own; a stage takes part with its panes, as changes."""
    require(len(parts) > 1, "union", f"{len(parts)} inputs", "Name two or more")
    return Pipeline((), parts=tuple(part_in(part, "union") for part in parts))


def join(
    left: Pipeline,
    right: Pipeline,
    by: str | Sequence[str],
    how: str = "inner",
    take: Mapping[str, str] | Sequence[str] | None = None,
) -> Pipeline:
    """Join two inputs by key within windows: what is in one window, and has the same key, is put together.

    `how` is inner, left, right, full, semi or anti. `take` says which columns a row has beside the key: names and
    where they come from, as in {"page": "clicks.page"}, or fields that one input alone has; without it, all.
    """
    one_of(how, KINDS, "join.how")
    pairs = None if take is None else taken_of(take)
    keys = names_of(by, "join.by")
    parts = (part_in(left, "join"), part_in(right, "join"))
    return Pipeline((), parts=parts, keys=keys, joining=Joining(how, pairs))


def part_in(part: Pipeline, word: str) -> Pipeline:
    """Return what takes part: an input with its steps, or a stage by its panes."""
    of_kind(part, Pipeline, word, A_STAGE)
    answered = (part.keys, part.outputs, part.where, part.when, part.how, part.sinks or None, part.joining)
    if any(answer is not None for answer in answered):
        return part.then()
    require(not part.parts, word, "a union inside another", "Name all inputs in one")
    return part


def read_panes(topic: str, *, columns: Mapping[str, str], lateness: Duration = 0) -> Pipeline:
    """Begin a pipeline over panes that another stream publishes, as `then()` does over those of its own stream.

    `columns` names their key and values, with types in Spark's words; `lateness` is that of the stage which
    publishes them, or more.
    """
    wanted = columns_of(columns, "read_panes.columns")
    when = When(lateness=milliseconds(lateness, "read_panes.lateness"))
    panes = Pipeline((Panes(topic, wanted),), where=Relayed(wanted), outputs=(), when=when, how="retracting")
    return panes.named(f"{topic}_panes").then()


def columns_of(written: Mapping[str, str], place: str) -> tuple[Column, ...]:
    """Return columns that are written down with their types."""
    fix = "Write names and types, as in {'word': 'STRING'}"
    of_kind(written, Mapping, place, fix)
    for pair in written.items():
        require(all(isinstance(each, str) for each in pair), f"{place}.{pair[0]}", repr(pair[1]), fix)
    return tuple(Column(name, kind) for name, kind in written.items())


def taken_of(take: Mapping[str, str] | Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the columns of a join, each with where it comes from."""
    if isinstance(take, Mapping):
        names_of([*take.keys(), *take.values()], "join.take")
        return tuple(take.items())
    return tuple((name, name) for name in names_of(take, "join.take"))


def names_of(written: str | Sequence[str], place: str) -> tuple[str, ...]:
    """Return one name, or several."""
    found: object = [written] if isinstance(written, str) else written
    several = isinstance(found, list | tuple) and all(isinstance(each, str) for each in found)
    require(several, place, repr(written), "Write a name, or a list of names")
    return tuple(found) if isinstance(found, list | tuple) else ()


def once(present: object, question: str) -> None:
    """Refuse a second answer to one question."""
    require(present is None, question, "answered twice", "Leave one of the two out")
