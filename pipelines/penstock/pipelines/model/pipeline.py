"""The pipeline as a person writes it: the four questions, in any order, each answered once.

Nothing runs and nothing is imported of Spark; `plan` is where a definition is checked as a whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, get_args

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model.durations import Duration, milliseconds
from penstock.pipelines.model.graph import plan_of
from penstock.pipelines.model.inputs import Readable, Repeats
from penstock.pipelines.model.joining import Joining
from penstock.pipelines.model.stepping import Stepping
from penstock.pipelines.model.when import When
from penstock.pipelines.model.written import columns_of, names_of, once
from penstock.pipelines.passing import Nothing, each_record
from penstock.pipelines.plan.aggregates import Aggregate, Output
from penstock.pipelines.plan.checks import called_as_a_place, of_kind, one_of, require
from penstock.pipelines.plan.custom import opaque
from penstock.pipelines.plan.relaying import Published
from penstock.pipelines.plan.remembering import NamedOutput, Remembering, TellingOrder, state_type
from penstock.pipelines.plan.sinks import CompleteTable, FinalPanes, LatestValues, PaneLog, Sink
from penstock.pipelines.plan.stage import DEFAULT, Accumulation, FinalPane, OnTimePane, Plan
from penstock.pipelines.plan.steps import Step
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


@dataclass(frozen=True)
class Pipeline(Stepping):
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

    def _stepped(self, step: Step) -> "Pipeline":
        return replace(self, steps=(*self.steps, step))

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
