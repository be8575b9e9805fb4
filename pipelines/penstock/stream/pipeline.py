"""The fluent API of a pipeline: what, where, when and how, in any order, each once.

Defining a pipeline runs nothing and does not import Spark. `plan` validates the whole definition.
"""

import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Never, TypeAlias, get_args

from penstock.core.duration import is_duration
from penstock.core.names import suggest_name
from penstock.engine.aggregates import Aggregate, AggregateOutput
from penstock.engine.definition.argument_checks import (
    require,
    require_one_of,
    require_storage_name,
    require_type,
)
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import call_with_arguments, find_keyword
from penstock.engine.definition.synonyms import MODE_SYNONYMS, VERB_SYNONYMS
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
from penstock.engine.triggers.trigger import Trigger, require_trigger
from penstock.engine.windows.window import Window
from penstock.stream.arguments import parse_columns, parse_names, require_unset
from penstock.stream.input_specs import DeduplicationSpec
from penstock.stream.keyword_registries import SINK_KEYWORDS
from penstock.stream.pipeline_definition import PipelineDefinition
from penstock.stream.pipeline_steps import PipelineSteps
from penstock.stream.plan_builder import build_plan
from penstock.stream.trigger_options import TriggerOptions

if TYPE_CHECKING:  # this imports Arrow, which a definition does not need
    from penstock.engine.functions.vectorized import KeyBatchContext, KeyBatchUpdate

PIPELINE_HINT = "Give a pipeline, as in read('sensors')"

SinkMode: TypeAlias = Literal["latest", "log", "final", "complete"]
"""What a table holds of the panes of a stage."""


@dataclass(frozen=True, repr=False)
class Pipeline(PipelineSteps):
    """A pipeline definition. Every method returns a new one.

    Start with `read`, `union`, `join` or `read_panes`. Not promised: that a definition is valid before `plan` or
    `to_plan` returns. Mistakes in one argument are raised by its method, others by the validation of the plan.
    """

    _definition: PipelineDefinition

    def __repr__(self) -> str:
        return f"<Pipeline {self._definition.stage_name or self._definition.main_table}>"

    if not TYPE_CHECKING:  # type checkers must refuse a method that does not exist

        def __getattr__(self, name: str) -> Any:
            methods = [method for method in dir(type(self)) if not method.startswith("_")]
            suggestion = "" if name.startswith("_") else suggest_name(name, methods, VERB_SYNONYMS)
            raise AttributeError(f"a pipeline has no method {name!r}.{suggestion}", name=name, obj=self)

    def then(self, *pipelines: "Pipeline") -> "Pipeline":
        """Start a stage that reads the panes of this and other pipelines, as changes in the same batch.

        Args:
            pipelines: other stages whose panes are read, too.

        Example:
            per_hour = per_minute.then().aggregate(warmest=max_("warmest")).window(fixed("1 hour"))
        """
        for pipeline in pipelines:
            require_type(pipeline, Pipeline, "then", PIPELINE_HINT)
        return Pipeline(PipelineDefinition(upstream=tuple(map(definition_of, (self, *pipelines)))))

    def named(self, name: str) -> "Pipeline":
        """Name the stage. The default is its first table, or its number in the pipeline.

        Args:
            name: a name that no other stage of the pipeline has. State and ledgers are stored under it.
        """
        require_unset(self._definition.stage_name, "name")
        require_storage_name(name, "name")
        return self._replace(stage_name=name)

    def also(self, *ends: "Pipeline") -> "Pipeline":
        """Run other outputs in the same batches: of this graph, or of another that may read the same topics.

        Args:
            ends: the other outputs, each a stage with `write` or `publish`.

        Example:
            both = alerts.also(sales_per_shop)
        """
        for end in ends:
            require_type(end, Pipeline, "also", PIPELINE_HINT)
        return self._replace(siblings=(*self._definition.siblings, *map(definition_of, ends)))

    def deduplicate(self, by: str | list[str] | None = None, within: Duration = "1 hour") -> "Pipeline":
        """Drop duplicates: records whose id was seen before.

        Args:
            by: the field or fields of the id. The default is the id of the contract.
            within: how far behind the watermark an id is remembered.

        Not promised: that a duplicate is dropped that arrives later than `within` after the first record.
        """
        require_unset(self._definition.deduplication_spec, "deduplicate")
        fields = None if by is None else parse_names(by, "deduplicate.by")
        return self._replace(deduplication_spec=DeduplicationSpec(fields, within))

    def _with_step(self, step: Step) -> "Pipeline":
        return self._replace(steps=(*self._definition.steps, step))

    def _replace(self, **parts: Any) -> "Pipeline":
        return Pipeline(replace(self._definition, **parts))

    def key(self, *fields: str) -> "Pipeline":
        """Group by these fields. Without a key, all records are one group.

        Args:
            fields: names of scalar fields.

        Example:
            read("sensors").key("site", "device")
        """
        require_unset(self._definition.key_fields, "key")
        for field in fields:
            require_type(field, str, "key", "Name the fields, as in key('device', 'site')")
        return self._replace(key_fields=fields)

    def aggregate(self, *unnamed: Never, **outputs: Aggregate) -> "Pipeline":
        """Set what is computed for each key and window.

        Args:
            unnamed: nothing; each result needs a name.
            outputs: the result columns, and the aggregate of each.

        Example:
            .aggregate(total=sum_("amount"), orders=count())
        """
        unnamed_results: tuple[object, ...] = unnamed
        for aggregate in unnamed_results:
            fix = f"Give each result a name: aggregate({_write_named_result(aggregate)})"
            raise DefinitionError("aggregate", "a result has no name", fix)
        require_unset(self._definition.aggregate_outputs, "aggregate")
        return self._replace(
            aggregate_outputs=tuple(AggregateOutput(name, aggregate) for name, aggregate in outputs.items())
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
        order: ProcessingOrder = "arrival",
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
        stateful_function = StatefulFunction(
            function_ref(function, version),
            state_type(state),
            columns,
            forget_after_ms,
            vectorized,
            clock,
            side_outputs,
            order,
        )
        require_unset(self._definition.window_spec, "window")
        require_unset(self._definition.aggregate_outputs, "aggregate")
        return self._replace(window_spec=stateful_function, aggregate_outputs=())

    def rows(self, returns: Mapping[str, str]) -> "Pipeline":
        """Emit each record as a row, instead of aggregate and window.

        Such a stage has no state and no lateness. Its rows go to a log, together with the key if there is one.

        Args:
            returns: the columns of the rows, with Spark SQL types.

        Example:
            read("orders").filter("amount > 1000").rows({"order_id": "STRING", "amount": "DOUBLE"})
        """
        return self.stateful(emit_each_record, state=NoState, returns=returns, vectorized=True, version="1")

    def window(self, window: Window) -> "Pipeline":
        """Set the windows, in event time unless the window uses processing time.

        Args:
            window: such as `fixed("1 minute")`, `sliding("1 hour", "5 minutes")` or `sessions("10 minutes")`.
        """
        require_unset(self._definition.window_spec, "window")
        if isinstance(window, str) and is_duration(window):
            fix = f"Write fixed({window!r})"
            raise DefinitionError("window", f"{window!r} is a duration, not a window", fix)
        fix = "Give a window, as in fixed('1 minute') or sessions('10 minutes')"
        require_type(window, Window, "window", fix)
        return self._replace(window_spec=window)

    def trigger(
        self,
        trigger: Trigger = DEFAULT_TRIGGER,
        *,
        lateness: Duration | None = None,
        may_finish: bool = False,
        on_time_pane: OnTimePanePolicy = "always",
        final_pane: FinalPanePolicy | None = None,
    ) -> "Pipeline":
        """Set when a window emits panes, and how long late records may correct it.

        A pane is a result of a window at one moment. The on-time pane is emitted when the watermark passes the end
        of the window; early panes come before it, late panes after it.

        Args:
            trigger: when a window emits panes. The default emits at the end of the window, and with each batch of
                late records.
            lateness: how long after its end a window accepts late records. The default is 0, or that of the
                upstream stages. Later records go to the late table.
            may_finish: accepts a trigger that fires a last time and then never again. Records that arrive after
                that go to the late table. Without it such a trigger is refused, because it loses records.
            on_time_pane: `always` emits an on-time pane for each window. `when_changed` leaves it out if no record
                came since the last early pane.
            final_pane: whether a window emits a last pane when it closes, after `lateness`: `never`, `always`, or
                `when_changed` if a record came since the last pane. The default is `never`, or `always` if a table
                of final panes would miss windows otherwise.

        Example:
            .trigger(after_watermark(early=every("10 seconds")), lateness="1 hour")

        Not promised: that panes are emitted at an exact time. A trigger is evaluated with each batch.
        """
        require_unset(self._definition.trigger_options, "trigger")
        require_trigger(trigger, "trigger")
        lateness_ms = None if lateness is None else to_milliseconds(lateness, "trigger.lateness")
        return self._replace(
            trigger_options=TriggerOptions(trigger, lateness_ms, may_finish, on_time_pane, final_pane)
        )

    def accumulation(self, mode: AccumulationMode) -> "Pipeline":
        """Set how the panes of a window relate to one another.

        Args:
            mode: `accumulating`, the default: each pane has the whole result and replaces the one before.
                `discarding`: each pane has only what came since the one before. `retracting`: as accumulating, and
                a row that retracts the old value comes before the new one.
        """
        require_unset(self._definition.accumulation_mode, "accumulation")
        require_one_of(mode, get_args(AccumulationMode), "accumulation", MODE_SYNONYMS)
        return self._replace(accumulation_mode=mode)

    def write(
        self,
        table: str,
        mode: "SinkMode | Callable[..., TableSink]" = "latest",
        output: str | None = None,
        **options: Any,
    ) -> "Pipeline":
        """Write the results to a Delta table.

        Args:
            table: the name of the table, which no other stage or pipeline writes.
            mode: `latest`: one row for each key and window, with its current value. `log`: every pane, with
                retractions. `final`: the last pane of each window. `complete`: the whole result, replaced with each
                batch. Or the function of a sink of your own, marked with `@keyword`.
            output: a side output of a stateful function, whose rows go to a log.
            options: the arguments of a sink of your own.

        Example:
            .write("orders_minute").write("orders_minute_log", mode="log")
        """
        define_sink: Callable[..., Any]
        if callable(mode):
            define_sink, mode_name = mode, getattr(mode, "__name__", repr(mode))
        else:
            require_type(mode, str, "write.mode", "Name the mode, as in mode='latest'")
            define_sink, mode_name = find_keyword(mode, SINK_KEYWORDS, "write.mode"), mode
        fix = "Write mode='log': rows of a side output are never replaced"
        takes_output = "output" in signature(define_sink).parameters
        require(output is None or takes_output, "write.output", f"{output} with mode {mode_name}", fix)
        arguments = options if output is None else {"output": output, **options}
        sink = call_with_arguments(define_sink, [table], arguments, "write")
        require_type(sink, TableSink, "write.mode", "Give a function that returns a TableSink")
        return self._replace(sinks=(*self._definition.sinks, sink))

    def publish(self, topic: str) -> "Pipeline":
        """Publish the panes as changes to a Kafka topic, which `read_panes` reads.

        Args:
            topic: the name of the topic, which must exist.

        Not promised: that a reader without `isolation.level=read_committed` sees each pane once.
        """
        return self._replace(topics=(*self._definition.topics, ChangelogTopic(topic)))

    @property
    def plan(self) -> Plan:
        """Return the validated plan, named after the first table."""
        return self.to_plan(self._definition.main_table)

    def to_plan(self, name: str) -> Plan:
        """Return the validated plan under this name.

        Args:
            name: the name of the stream, under which state, checkpoints and ledgers are stored.

        Raises DefinitionError with all problems that the validation finds.
        """
        try:
            return build_plan(name, self._definition)
        except DefinitionError as problem:
            raise problem.with_location(problem.location or f"pipeline {name}") from None


def definition_of(pipeline: Pipeline) -> PipelineDefinition:
    """Return what a pipeline was defined as, for the modules of this package."""
    return pipeline._definition  # noqa: SLF001  # users do not see it in completion


def add_step(pipeline: Pipeline, step: Step) -> Pipeline:
    """Return a pipeline with one more step, for the modules of this package."""
    return Pipeline(replace(definition_of(pipeline), steps=(*definition_of(pipeline).steps, step)))


def _write_named_result(aggregate: object) -> str:
    """Return a result with a name, as a user would write it: `total=sum_('amount')`."""
    if not isinstance(aggregate, Aggregate):
        return "readings=count()"
    function = aggregate.function_name
    fields = aggregate.used_fields
    column = "_".join((function, *fields)) if function != "sum" else "total"
    trailing_underscore = "_" if function in vars(builtins) else ""
    return f"{column}={function}{trailing_underscore}({', '.join(map(repr, fields))})"
