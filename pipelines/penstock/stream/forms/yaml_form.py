"""A pipeline as YAML: the document that `from_document` reads."""

from collections.abc import Mapping
from inspect import signature
from keyword import iskeyword
from typing import Any

from penstock.ingestion.contracts.yaml_files import format_yaml
from penstock.stream.forms.kind_calls import CallValue, DurationText, KindCall
from penstock.stream.forms.sections import describe_sections, describe_topic, find_panes_input
from penstock.stream.forms.steps import StepForm
from penstock.stream.pipeline_definition import PipelineDefinition
from penstock.stream.plan_builder import iter_outputs
from penstock.stream.yaml_loader.keywords import list_positional_parameters

Document = dict[str, Any]


def format_as_yaml(_: str, definition: PipelineDefinition) -> str:
    """Return a pipeline as the text of a YAML file, whose name is that of the pipeline."""
    return format_yaml(write_document(definition), short_lines=True)


def write_document(definition: PipelineDefinition) -> Document:
    """Return a pipeline with all its outputs as one document."""
    main, *others = iter_outputs(definition)
    if others and len(main.upstream) == 1 and all(other.upstream == main.upstream for other in others):
        stages = [_write_sections(output) for output in (main, *others)]
        return {**_write_stage(main.upstream[0].without_siblings()), "then": stages}
    document = _write_stage(main)
    also = [_write_stage(other) for other in others]
    return {**document, "also": also if len(also) > 1 else also[0]} if also else document


def _write_stage(definition: PipelineDefinition) -> Document:
    """Return a stage or an input with steps, after the document of what it reads."""
    sections = _write_sections(definition)
    panes = find_panes_input(definition)
    if panes is not None:
        return {"read_panes": _plain(panes), **sections}
    if len(definition.upstream) == 1:
        upstream = _write_stage(definition.upstream[0].without_siblings())
        return _append_stage(upstream, sections) if sections else upstream
    if definition.upstream:
        return {"union": [_write_stage(each.without_siblings()) for each in definition.upstream], **sections}
    if definition.join_spec is not None:
        return {"join": _write_join(definition), **sections}
    if definition.input_parts:
        return {"union": [_write_part(part) for part in definition.input_parts], **sections}
    return {"read": _write_read(definition), **sections}


def _append_stage(document: Document, sections: Document) -> Document:
    """Return a document with a stage after its last one."""
    if "then" in document:
        return {**document, "then": _append_stage(document["then"], sections)}
    return {**document, "then": sections}


def _write_part(part: PipelineDefinition) -> Any:
    document = _write_stage(part.without_siblings())
    is_topic = set(document) == {"read"} and isinstance(document["read"], str)
    return document["read"] if is_topic else document


def _write_read(definition: PipelineDefinition) -> Any:
    described = [describe_topic(each) for each in definition.inputs]
    names = [topic for topic, _ in described]
    topics: Any = names[0] if len(names) == 1 else names
    options = _plain(described[0][1])
    return {"topic": topics, **options} if options else topics


def _write_join(definition: PipelineDefinition) -> Document:
    left, right = definition.input_parts
    join, key = definition.join_spec, list(definition.key_fields or ())
    section: Document = {
        "left": _write_part(left),
        "right": _write_part(right),
        "by": key[0] if len(key) == 1 else key,
    }
    if join is not None and join.how != "inner":
        section["how"] = join.how
    if join is not None and join.take is not None:
        section["take"] = dict(join.take)
    return section


def _write_sections(definition: PipelineDefinition) -> Document:
    """Return the sections of a stage as a YAML parser returns them."""
    return {name: _write_section(name, value) for name, value in describe_sections(definition).items()}


def _write_section(name: str, value: Any) -> Any:
    match name:
        case "steps":
            return [_write_step(step) for step in value]
        case "aggregate":
            return {column: write_aggregate(call) for column, call in value.items()}
        case "trigger":
            return _write_trigger(value)
        case "write":
            sinks = [_write_sink(call) for call in value]
            return sinks[0] if len(sinks) == 1 else sinks
        case "key" | "publish":
            return value[0] if len(value) == 1 else value
    return write_keyword(value) if isinstance(value, KindCall) else _plain(value)


def _write_step(step: StepForm) -> Document:
    if step.value is None:
        return {step.keyword: _plain(step.options)}
    return {step.keyword: step.value, **_plain(step.options)}


def _write_trigger(options: Mapping[str, Any]) -> Any:
    plain = {name: _plain(value) for name, value in options.items() if name != "trigger"}
    if "trigger" not in options:
        return plain or "default"
    node = write_keyword(options["trigger"])
    if not plain:
        return node
    return {**(node if isinstance(node, dict) else {node: None}), **plain}


def _write_sink(call: KindCall) -> Any:
    (table,) = call.positional
    mode = {} if call.keyword == "latest" else {"mode": call.keyword}
    options = {**mode, **call.named}
    return {"table": table, **options} if options else table


def write_keyword(call: KindCall) -> Any:
    """Return `keyword`, `{keyword: argument}`, or `{keyword: arguments}`."""
    positional = [_write_value(value) for value in call.positional]
    if not call.named:
        return (
            {call.keyword: positional[0] if len(positional) == 1 else positional}
            if positional
            else call.keyword
        )
    parameters = list_positional_parameters(signature(call.function), len(positional))
    names = [each.name for each in parameters if each is not None]
    named = {name: _write_value(value) for name, value in call.named.items()}
    return {call.keyword: {**dict(zip(names, positional, strict=False)), **named}}


def write_aggregate(call: KindCall) -> str:
    """Return an aggregate as a call: `top(3, tag, by=uses)`."""
    named = [f"{name}={_write_argument(value)}" for name, value in call.named.items()]
    return f"{call.keyword}({', '.join([*map(_write_argument, call.positional), *named])})"


def _write_argument(value: CallValue) -> str:
    if isinstance(value, KindCall):
        return write_aggregate(value)
    is_path = isinstance(value, str) and all(
        part.isidentifier() and not iskeyword(part) for part in value.split(".")
    )
    return str(value) if is_path else repr(value)


def _write_value(value: CallValue) -> Any:
    return write_keyword(value) if isinstance(value, KindCall) else _plain(value)


def _plain(value: Any) -> Any:
    """Return a value of plain types, for the YAML writer."""
    match value:
        case DurationText():
            return str(value)
        case dict():
            return {name: _plain(each) for name, each in value.items()}
    return value
