"""The parts of a definition as the sections of a document, with calls of keywords as data for each form."""

from dataclasses import fields
from typing import Any

from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.phrases import format_duration
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.stages import DEFAULT_TRIGGER
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.ingestion.contracts import Contract
from penstock.stream.forms.function_names import name_function, read_version
from penstock.stream.forms.kind_calls import DurationText, describe_kind
from penstock.stream.forms.steps import column_types, describe_step
from penstock.stream.input_specs import InputSpec, PanesInput, TopicInput
from penstock.stream.keyword_registries import (
    AGGREGATE_KEYWORDS,
    SINK_KEYWORDS,
    TRIGGER_KEYWORDS,
    WINDOW_KEYWORDS,
)
from penstock.stream.pipeline_definition import PipelineDefinition
from penstock.stream.trigger_options import TriggerOptions

_DURATION_OPTIONS = ("max_out_of_orderness", "idle_after", "max_future_skew")


def describe_topic(topic_input: InputSpec) -> tuple[str, dict[str, Any]]:
    """Return a topic and the options of `read` that differ from their defaults."""
    if not isinstance(topic_input, TopicInput):
        raise DefinitionError("read", f"{type(topic_input).__name__} is no topic", "Read a topic")
    topic = topic_input.topic
    if isinstance(topic, Contract):
        raise DefinitionError(
            "read", f"the contract of {topic.topic} is a Python object", "Put it into the catalog"
        )
    options = {}
    for option in fields(topic_input)[1:]:
        value = getattr(topic_input, option.name)
        if value != option.default:
            is_duration = option.name in _DURATION_OPTIONS and value != "unlimited"
            options[option.name] = _duration(value) if is_duration else value
    return topic, options


def find_panes_input(definition: PipelineDefinition) -> dict[str, Any] | None:
    """Return the options of `read_panes` if a definition starts with it."""
    first = definition.upstream[0] if len(definition.upstream) == 1 else None
    if first is None or not isinstance(first.window_spec, ChangelogWindows):
        return None
    (panes,) = first.inputs
    if not isinstance(panes, PanesInput):
        return None
    lateness = (first.trigger_options or TriggerOptions()).lateness
    options = {"topic": panes.topic, "columns": column_types(panes.columns)}
    return {**options, "lateness": _duration(lateness)} if lateness else options


def describe_deduplication(definition: PipelineDefinition) -> dict[str, Any]:
    """Return the section `deduplicate`, if it is set."""
    spec = definition.deduplication_spec
    if spec is None:
        return {}
    fields_of_id = {"by": list(spec.by)} if spec.by is not None else {}
    return {"deduplicate": {**fields_of_id, "within": _duration(spec.within)}}


def describe_sections(definition: PipelineDefinition) -> dict[str, Any]:
    """Return the sections of a stage, after its input: steps, key, aggregates, window, trigger and outputs."""
    sections: dict[str, Any] = {**describe_deduplication(definition)}
    if definition.steps:
        sections["steps"] = [describe_step(step) for step in definition.steps]
    if definition.key_fields and definition.join_spec is None:
        sections["key"] = list(definition.key_fields)
    window = definition.window_spec
    if isinstance(window, StatefulFunction):
        sections |= _describe_function(window)
    else:
        if definition.aggregate_outputs is not None:
            sections["aggregate"] = {
                output.name: describe_kind(output.aggregate, AGGREGATE_KEYWORDS, f"aggregate.{output.name}")
                for output in definition.aggregate_outputs
            }
        if window is not None:
            sections["window"] = describe_kind(window, WINDOW_KEYWORDS, "window")
    if definition.trigger_options is not None:
        sections["trigger"] = _describe_trigger(definition.trigger_options)
    if definition.accumulation_mode is not None:
        sections["accumulation"] = definition.accumulation_mode
    if definition.sinks:
        sections["write"] = [describe_kind(sink, SINK_KEYWORDS, "write") for sink in definition.sinks]
    if definition.topics:
        sections["publish"] = [topic.topic for topic in definition.topics]
    if definition.stage_name is not None:
        sections["name"] = definition.stage_name
    return sections


def _describe_function(window: StatefulFunction) -> dict[str, Any]:
    """Return the section of a stateful function, or that of the records as they are."""
    returns = column_types(window.returns)
    if window.is_pass_through:
        return {"rows": returns}
    options: dict[str, Any] = {
        "function": name_function(window.function, "stateful"),
        "state": window.state.name,
        "returns": returns,
    }
    if window.forget_after is not None:
        options["forget_after"] = DurationText(format_duration(window.forget_after))
    if window.outputs:
        options["outputs"] = {output.name: column_types(output.returns) for output in window.outputs}
    for name, default in (("vectorized", False), ("clock", False), ("order", "arrival")):
        if getattr(window, name) != default:
            options[name] = getattr(window, name)
    return {"stateful": {**options, **read_version(window.function)}}


def _describe_trigger(options: TriggerOptions) -> dict[str, Any]:
    """Return the trigger under `trigger`, unless it is the default, and the options that are set."""
    described: dict[str, Any] = {}
    if options.trigger != DEFAULT_TRIGGER:
        described["trigger"] = describe_kind(options.trigger, TRIGGER_KEYWORDS, "trigger")
    if options.lateness is not None:
        described["lateness"] = DurationText(format_duration(options.lateness))
    for name, default in (("may_finish", False), ("on_time_pane", "always"), ("final_pane", None)):
        if getattr(options, name) != default:
            described[name] = getattr(options, name)
    return described


def _duration(duration: Duration) -> DurationText:
    return DurationText(format_duration(to_milliseconds(duration, "duration")))
