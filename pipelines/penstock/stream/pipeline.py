"""The fluent API of a pipeline: what, where, when and how, in any order, each once.

Defining a pipeline runs nothing and does not import Spark. `plan` validates the whole definition.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, get_args

from penstock.engine.aggregates import Aggregate, AggregateOutput
from penstock.engine.definition.argument_checks import (
    require,
    require_one_of,
    require_storage_name,
    require_type,
)
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import call_with_arguments, find_keyword
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import DefinitionError
from penstock.engine.functions.pass_through import NoState, emit_each_record
from penstock.engine.functions.stateful import KeyContext, KeyUpdate
from penstock.engine.plan.sinks import TableSink
from penstock.engine.plan.stages import (
    DEFAULT_TRIGGER,
    AccumulationMode,
    FinalPanePolicy,
    OnTimePanePolicy,
    Plan,
)
from penstock.engine.plan.stateful_function import ProcessingOrder, SideOutput, StatefulFunction, state_type
from penstock.engine.plan.steps import Step
from penstock.engine.sinks.changelog_topic import ChangelogTopic
from penstock.engine.triggers.trigger import TRIGGER_HINT, Trigger
from penstock.engine.windows.window import Window
from penstock.stream.arguments import parse_columns, parse_names, require_unset
from penstock.stream.input_specs import DeduplicationSpec, InputSpec
from penstock.stream.join_columns import JoinSpec
from penstock.stream.keyword_registries import SINK_KEYWORDS
from penstock.stream.pipeline_steps import PipelineSteps
from penstock.stream.plan_builder import build_plan
from penstock.stream.trigger_options import TriggerOptions

if TYPE_CHECKING:  # this imports Arrow, which a definition does not need
    from penstock.engine.functions.vectorized import KeyBatchContext, KeyBatchUpdate

PIPELINE_HINT = "Give a pipeline, as in read('sensors')"


@dataclass(frozen=True)
class Pipeline(PipelineSteps):
    """A pipeline definition. Every method returns a new one."""

    inputs: tuple[InputSpec, ...]
    deduplication_spec: DeduplicationSpec | None = None
    steps: tuple[Step, ...] = ()
    key_fields: tuple[str, ...] | None = None
    aggregate_outputs: tuple[AggregateOutput, ...] | None = None
    window_spec: Window | None = None
    trigger_options: TriggerOptions | None = None
    accumulation_mode: str | None = None
    sinks: tuple[TableSink, ...] = ()
    topics: tuple[ChangelogTopic, ...] = ()
    upstream: "tuple[Pipeline, ...]" = ()
    """The pipelines whose panes it reads instead of inputs."""
    stage_name: str | None = None
    siblings: "tuple[Pipeline, ...]" = ()
    """Other outputs of the same graph."""
    input_parts: "tuple[Pipeline, ...]" = ()
    """The parts of a union or join, each with its own steps."""
    join_spec: JoinSpec | None = None

    def then(self, *pipelines: "Pipeline") -> "Pipeline":
        """Start a stage that reads the panes of this and other pipelines, as changes in the same batch."""
        for pipeline in pipelines:
            require_type(pipeline, Pipeline, "then", PIPELINE_HINT)
        return Pipeline((), upstream=(self, *pipelines))

    def named(self, name: str) -> "Pipeline":
        """Name the stage. The default is its first table, or its number in the pipeline."""
        require_unset(self.stage_name, "name")
        require_storage_name(name, "name")
        return replace(self, stage_name=name)

    def also(self, *ends: "Pipeline") -> "Pipeline":
        """Run other outputs in the same batches: of this graph, or of another that may read the same topics."""
        for end in ends:
            require_type(end, Pipeline, "also", PIPELINE_HINT)
        return replace(self, siblings=(*self.siblings, *ends))

    def deduplicate(self, by: str | list[str] | None = None, within: Duration = "1 hour") -> "Pipeline":
        """Drop duplicates: records whose id was seen before. Ids expire `within` behind the watermark.

        `by` names the fields of the id; the default is the id of the contract.
        """
        require_unset(self.deduplication_spec, "deduplicate")
        fields = None if by is None else parse_names(by, "deduplicate.by")
        return replace(self, deduplication_spec=DeduplicationSpec(fields, within))

    def _with_step(self, step: Step) -> "Pipeline":
        return replace(self, steps=(*self.steps, step))

    def key(self, *fields: str) -> "Pipeline":
        """Group by these fields."""
        require_unset(self.key_fields, "key")
        for field in fields:
            require_type(field, str, "key", "Name the fields, as in key('device', 'site')")
        return replace(self, key_fields=fields)

    def aggregate(self, **outputs: Aggregate) -> "Pipeline":
        """Set what is computed: result columns and their aggregates."""
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
        """Apply a stateful function to the records of each key, instead of aggregate and window.

        See `penstock.engine.functions.stateful`, and `penstock.engine.functions.vectorized` for vectorized
        functions.

        Args:
            function: a function from KeyContext to KeyUpdate, or from KeyBatchContext to KeyBatchUpdate.
            state: the class of the state: a dataclass or a msgspec type.
            returns: the columns of the rows that the function returns, with Spark SQL types.
            forget_after: the event time without records after which the state of a key is deleted.
            vectorized: calls the function once for all keys of a batch, over Arrow.
            clock: declares processing-time timers. Such a function cannot run over bounded input, because stored
                records have no processing time.
            outputs: side outputs by name, with their columns. `write(..., output=name)` sets the table of each.
            version: replaces the hash of the code in the fingerprint of the plan.
            order: `arrival`, or `event_time`: records then wait for the watermark, and timers fire between them.
        """
        require(
            callable(function), "stateful", repr(function), "Give a function from KeyContext to KeyUpdate"
        )
        require_type(state, type, "stateful.state", "Give the class of the state, usually a dataclass")
        columns = parse_columns(returns, "stateful.returns")
        fix = "Write names and columns, as in outputs={'refused': {'reason': 'STRING'}}"
        require_type(outputs, Mapping, "stateful.outputs", fix)
        side_outputs = tuple(
            SideOutput(output, parse_columns(output_columns, f"stateful.outputs.{output}"))
            for output, output_columns in outputs.items()
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
        """Emit each record as a row with these columns and types, instead of aggregate and window.

        Such a stage has no state and no lateness. Its rows go to a log, together with the key if there is one.
        """
        return self.stateful(emit_each_record, state=NoState, returns=returns, vectorized=True, version="1")

    def window(self, window: Window) -> "Pipeline":
        """Set the windows, in event time unless the window uses processing time."""
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
        """Set when panes are emitted, and the allowed lateness of records that correct them.

        Args:
            trigger: when a window emits panes. lateness: how long a window accepts late records. The default is 0,
            or that of the upstream stages. may_finish: allows a trigger that finishes. Later records then go to the
            late table. on_time_pane: `always`, or `when_changed` to skip on-time panes of windows without new
            records. final_pane: `never`, `when_changed` or `always` emit a pane when the window closes. The default
            is `never`, or `always` if a table of final panes needs it.
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
        """Set how the panes of a window relate: discarding, accumulating or retracting."""
        require_unset(self.accumulation_mode, "accumulation")
        require_one_of(mode, get_args(AccumulationMode), "accumulation")
        return replace(self, accumulation_mode=mode)

    def write(
        self, table: str, mode: str = "latest", output: str | None = None, **options: Any
    ) -> "Pipeline":
        """Write a table: `latest` value per key and window, `log` of panes, `final` panes, or `complete` result.

        `mode` may also be `module:name` for a sink of your own; `options` are the arguments of its function.
        `output` is a side output of a stateful function; its rows go to a log.
        """
        require_type(mode, str, "write.mode", "Name the mode, as in mode='latest'")
        define_sink = find_keyword(mode, SINK_KEYWORDS, "write.mode")
        fix = "Write mode='log': rows of a side output are never replaced"
        takes_output = "output" in signature(define_sink).parameters
        require(output is None or takes_output, "write.output", f"{output} with mode {mode}", fix)
        arguments = options if output is None else {"output": output, **options}
        sink: TableSink = call_with_arguments(define_sink, [table], arguments, "write")
        return replace(self, sinks=(*self.sinks, sink))

    def publish(self, topic: str) -> "Pipeline":
        """Publish the panes as changes to a Kafka topic, which `read_panes` reads."""
        return replace(self, topics=(*self.topics, ChangelogTopic(topic)))

    @property
    def plan(self) -> Plan:
        """Return the validated plan, named after the first table."""
        return self.to_plan(self.sinks[0].table if self.sinks else "unnamed")

    def to_plan(self, name: str) -> Plan:
        """Return the validated plan under this name."""
        try:
            return build_plan(name, self)
        except DefinitionError as problem:
            raise problem.with_location(problem.location or f"pipeline {name}") from None
