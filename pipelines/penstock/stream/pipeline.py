"""The pipeline as a person writes it: the four questions, in any order, each answered once.

Nothing runs and nothing is imported of Spark; `plan` is where a definition is checked as a whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, get_args

from penstock.engine.errors import DefinitionError
from penstock.engine.functions.pass_through import NoState, emit_each_record
from penstock.engine.functions.stateful import KeyContext, KeyUpdate
from penstock.engine.plan.aggregates import Aggregate, AggregateOutput
from penstock.engine.plan.changelog import ChangelogTopic
from penstock.engine.plan.sinks import CompleteTableSink, FinalPanes, LatestValues, PaneLog, Sink
from penstock.engine.plan.stages import (
    DEFAULT_TRIGGER,
    AccumulationMode,
    FinalPanePolicy,
    OnTimePanePolicy,
    Plan,
)
from penstock.engine.plan.stateful_function import ProcessingOrder, SideOutput, StatefulFunction, state_type
from penstock.engine.plan.steps import Step
from penstock.engine.plan.triggers import TRIGGER_HINT, Trigger
from penstock.engine.plan.user_functions import function_ref
from penstock.engine.plan.validation.argument_checks import (
    require,
    require_one_of,
    require_storage_name,
    require_type,
)
from penstock.engine.plan.windows import Window
from penstock.stream.arguments import parse_columns, parse_names, require_unset
from penstock.stream.durations import Duration, to_milliseconds
from penstock.stream.input_specs import DeduplicationSpec, InputSpec
from penstock.stream.join_columns import JoinSpec
from penstock.stream.pipeline_steps import PipelineSteps
from penstock.stream.plan_builder import build_plan
from penstock.stream.trigger_options import TriggerOptions

if TYPE_CHECKING:  # it brings Arrow, which a definition does not need
    from penstock.engine.functions.vectorized import KeyBatchContext, KeyBatchUpdate

SINKS_BY_MODE: dict[str, Callable[[str], Sink]] = {
    "latest": LatestValues,
    "log": PaneLog,
    "final": FinalPanes,
    "complete": CompleteTableSink,
}


PIPELINE_HINT = "Give what read(...) begins, as in read('sensors')"


@dataclass(frozen=True)
class Pipeline(PipelineSteps):
    """A definition in the making; every method returns a new one."""

    inputs: tuple[InputSpec, ...]
    deduplication_spec: DeduplicationSpec | None = None
    steps: tuple[Step, ...] = ()
    key_fields: tuple[str, ...] | None = None
    aggregate_outputs: tuple[AggregateOutput, ...] | None = None
    window_spec: Window | None = None
    trigger_options: TriggerOptions | None = None
    accumulation_mode: str | None = None
    sinks: tuple[Sink, ...] = ()
    topics: tuple[ChangelogTopic, ...] = ()
    upstream: "tuple[Pipeline, ...]" = ()
    """The pipelines whose panes it reads in place of inputs."""
    stage_name: str | None = None
    siblings: "tuple[Pipeline, ...]" = ()
    """Other ends of the same graph."""
    input_parts: "tuple[Pipeline, ...]" = ()
    """What is united in place of inputs, each with steps of its own."""
    join_spec: JoinSpec | None = None

    def then(self, *others: "Pipeline") -> "Pipeline":
        """Begin a stage that reads the panes of this one, and of others beside it, as changes in the same batch."""
        for other in others:
            require_type(other, Pipeline, "then", PIPELINE_HINT)
        return Pipeline((), upstream=(self, *others))

    def named(self, name: str) -> "Pipeline":
        """Name the stage; otherwise it goes by its first table, or by its number in the pipeline."""
        require_unset(self.stage_name, "name")
        require_storage_name(name, "name")
        return replace(self, stage_name=name)

    def also(self, *ends: "Pipeline") -> "Pipeline":
        """Let other ends run in the same batches: of this graph, or of another that may read the same topics."""
        for end in ends:
            require_type(end, Pipeline, "also", PIPELINE_HINT)
        return replace(self, siblings=(*self.siblings, *ends))

    def deduplicate(self, by: str | list[str] | None = None, within: Duration = "1 hour") -> "Pipeline":
        """Set aside records whose id was seen within the horizon; the contract's id tells unless `by` does."""
        require_unset(self.deduplication_spec, "deduplicate")
        fields = None if by is None else parse_names(by, "deduplicate.by")
        return replace(self, deduplication_spec=DeduplicationSpec(fields, within))

    def _with_step(self, step: Step) -> "Pipeline":
        return replace(self, steps=(*self.steps, step))

    def key(self, *fields: str) -> "Pipeline":
        """Group by these fields."""
        require_unset(self.key_fields, "key")
        for field in fields:
            require_type(field, str, "key", "Name fields one after the other, as in key('device', 'site')")
        return replace(self, key_fields=fields)

    def aggregate(self, **outputs: Aggregate) -> "Pipeline":
        """Say what is computed: a column's name, and the aggregate in it."""
        require_unset(self.aggregate_outputs, "aggregate")
        return replace(
            self,
            aggregate_outputs=tuple(AggregateOutput(name, aggregate) for name, aggregate in outputs.items()),
        )

    def stateful(
        self,
        function: "Callable[[KeyContext[Any]], KeyUpdate[Any]] | Callable[[KeyBatchContext], KeyBatchUpdate]",
        *,
        state: type[Any],
        returns: Mapping[str, str],
        forget_after: Duration | None = None,
        vectorized: bool = False,
        clock: bool = False,
        outputs: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        version: str | None = None,
        order: str = "arrival",
    ) -> "Pipeline":
        """Hand a key's records, in their order, to a function with a memory: in the place of aggregate and window.

        `state` is what it remembers, a dataclass or a type of msgspec; `returns` names the columns of its rows,
        with their types in Spark's words. See `penstock.engine.functions.stateful`. A `vectorized` function gets
        all keys of a batch at once, in Arrow: see `penstock.engine.functions.vectorized`. One that sets timers of
        the batch clock says `clock=True`: it cannot run over stored records, which do not say when they came.
        `outputs` are further places for rows, by name, with columns of their own: `write(..., output=name)` says
        where each goes.
        In the `order` of "event_time" records wait for the watermark, and timers come between them where they lie.
        """
        require(
            callable(function), "stateful", repr(function), "Give a function from KeyContext to KeyUpdate"
        )
        require_type(
            state, type, "stateful.state", "Give the class of what it remembers, a dataclass as a rule"
        )
        columns = parse_columns(returns, "stateful.returns")
        fix = "Write names and columns, as in outputs={'refused': {'reason': 'STRING'}}"
        require_type(outputs, Mapping, "stateful.outputs", fix)
        side_outputs = tuple(
            SideOutput(output, parse_columns(stateful_function, f"stateful.outputs.{output}"))
            for output, stateful_function in outputs.items()
        )
        forget_after_ms = (
            None if forget_after is None else to_milliseconds(forget_after, "stateful.forget_after")
        )
        processing_order = cast("ProcessingOrder", order)
        stateful_function = StatefulFunction(
            function_ref(function, version),
            state_type(state),
            columns,
            forget_after_ms,
            vectorized,
            clock,
            side_outputs,
            processing_order,
        )
        require_unset(self.window_spec, "window")
        require_unset(self.aggregate_outputs, "aggregate")
        return replace(self, window_spec=stateful_function, aggregate_outputs=())

    def rows(self, returns: Mapping[str, str]) -> "Pipeline":
        """Take each record for a row, with these columns and types: in the place of aggregate and window.

        Such a stage keeps nothing and waits for nothing; its rows go to a log, beside the key where there is one.
        """
        return self.stateful(emit_each_record, state=NoState, returns=returns, vectorized=True, version="1")

    def window(self, window: Window) -> "Pipeline":
        """Say where in event time results belong."""
        require_unset(self.window_spec, "window")
        require_type(
            window, Window, "window", "Give a window, as in fixed('1 minute') or sessions('10 minutes')"
        )
        return replace(self, window_spec=window)

    def trigger(
        self,
        trigger: Trigger = DEFAULT_TRIGGER,
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
        require_unset(self.trigger_options, "trigger")
        require_type(trigger, Trigger, "trigger", TRIGGER_HINT)
        lateness_ms = None if lateness is None else to_milliseconds(lateness, "trigger.lateness")
        on_time_policy, final_pane_policy = (
            cast("OnTimePanePolicy", on_time_pane),
            cast("FinalPanePolicy | None", final_pane),
        )
        return replace(
            self,
            trigger_options=TriggerOptions(
                trigger, lateness_ms, may_finish, on_time_policy, final_pane_policy
            ),
        )

    def accumulation(self, mode: str) -> "Pipeline":
        """Say how panes of a window relate: discarding, accumulating or retracting."""
        require_unset(self.accumulation_mode, "accumulation")
        require_one_of(mode, get_args(AccumulationMode), "accumulation")
        return replace(self, accumulation_mode=mode)

    def write(self, table: str, mode: str = "latest", output: str | None = None) -> "Pipeline":
        """Say where results go: the `latest` value per window, a `log` of panes, `final` panes, or `complete`.

        `output` is one of those that a function with a memory declares; its rows go to a log.
        """
        require_one_of(mode, tuple(SINKS_BY_MODE), "write.mode")
        fix = "Write mode='log': rows of a function stand by themselves"
        require(output is None or mode == "log", "write.output", f"{output}, with mode {mode}", fix)
        sink = SINKS_BY_MODE[mode](table) if output is None else PaneLog(table, output)
        return replace(self, sinks=(*self.sinks, sink))

    def publish(self, topic: str) -> "Pipeline":
        """Say that panes go to a Kafka topic as well, with their changes: what `read_panes` reads."""
        return replace(self, topics=(*self.topics, ChangelogTopic(topic)))

    @property
    def plan(self) -> Plan:
        """Return the checked plan, named after the first table."""
        return self.to_plan(self.sinks[0].table if self.sinks else "unnamed")

    def to_plan(self, name: str) -> Plan:
        """Return the checked plan under this name."""
        try:
            return build_plan(name, self)
        except DefinitionError as problem:
            raise problem.with_location(problem.location or f"pipeline {name}") from None
