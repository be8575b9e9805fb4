"""Pipelines in YAML. A document gives the same plan as the equivalent Python definition."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.keyword import call_with_arguments
from penstock.engine.definition.user_functions import import_by_name
from penstock.engine.errors import DefinitionError
from penstock.ingestion.contracts.yaml_files import read_yaml
from penstock.ingestion.errors import DocumentError
from penstock.stream.inputs import join, read, read_panes, union
from penstock.stream.keyword_registries import TRIGGER_KEYWORDS, WINDOW_KEYWORDS
from penstock.stream.pipeline import Pipeline
from penstock.stream.yaml_loader.aggregate_calls import parse_aggregate
from penstock.stream.yaml_loader.keywords import parse_keyword, require_known_name
from penstock.stream.yaml_loader.nodes import require_mapping, require_strings
from penstock.stream.yaml_loader.steps import apply_steps

TRIGGER_OPTIONS = ("lateness", "may_finish", "on_time_pane", "final_pane")


def from_yaml(path: Path) -> Pipeline:
    """Load a definition from a YAML file. Errors name the file."""
    try:
        document = read_yaml(path)
    except DocumentError as problem:
        raise DefinitionError("the file", problem, "Fix the YAML syntax", str(path)) from None
    return from_document(document, str(path))


def from_document(document: object, location: str = "") -> Pipeline:
    """Load a definition from a parsed YAML document."""
    try:
        return parse_document(require_mapping(document, "the document"))
    except DefinitionError as problem:
        raise problem.with_location(problem.location or location) from None
    except RecursionError:
        raise DefinitionError("the document", "nested too deeply", "Reduce the nesting", location) from None


def parse_document(document: Mapping[str, Any]) -> Pipeline:
    """Parse a document with an input and other sections."""
    for name in document:
        require_known_name(name, SECTION_HANDLERS, "the document")
    input_sections = [name for name in INPUT_SECTIONS if name in document]
    if not input_sections:
        raise DefinitionError("read", "missing", "Name a topic, as in read: sensors")
    require(
        len(input_sections) == 1,
        input_sections[-1],
        "together with another input",
        f"Write one of: {', '.join(INPUT_SECTIONS)}",
    )
    return apply_sections(INPUT_SECTIONS[input_sections[0]](document[input_sections[0]]), document)


def apply_sections(pipeline: Pipeline, document: Mapping[str, Any]) -> Pipeline:
    """Apply all sections of a document to a pipeline."""
    for name, apply_section in SECTION_HANDLERS.items():
        if name in document:
            pipeline = apply_section(pipeline, document[name])
    return pipeline


def parse_read(node: object) -> Pipeline:
    """Parse `read`: a topic, a list of topics, or a mapping with `topic` and options."""
    if isinstance(node, str | list):
        return read(*require_strings(node, "read"))
    options = dict(require_mapping(node, "read"))
    topics = require_strings(options.pop("topic", options.pop("topics", [])), "read.topic")
    pipeline: Pipeline = call_with_arguments(read, topics, options, "read")
    return pipeline


def parse_union(node: object) -> Pipeline:
    """Parse `union`: a list of inputs, each with its own steps."""
    inputs = node if isinstance(node, list) else [node]
    return union(
        *(parse_part(input_node, f"union.{number}") for number, input_node in enumerate(inputs, start=1))
    )


def parse_join(node: object) -> Pipeline:
    """Parse `join: {left: {read: clicks}, right: {read: views}, by: user, how: left, take: {...}}`."""
    options = dict(require_mapping(node, "join"))
    sides = {side: parse_part(options.pop(side, None), f"join.{side}") for side in ("left", "right")}
    joined_pipeline: Pipeline = call_with_arguments(join, [], {**sides, **options}, "join")
    return joined_pipeline


def parse_part(node: object, field: str) -> Pipeline:
    """Parse an input of a union or join: a topic, a document with `read` and steps, or a whole stage."""
    require(node is not None, field, "missing", "Name a topic, or write a mapping with `read`")
    document = {"read": node} if isinstance(node, str) else require_mapping(node, field)
    if not set(document) <= set(PART_SECTIONS):
        return parse_stage(document, field)
    require("read" in document, f"{field}.read", "missing", "Name a topic, as in read: sensors")
    return apply_sections(parse_read(document["read"]), document)


def parse_stage(document: Mapping[str, Any], field: str) -> Pipeline:
    """Parse a stage that is part of a union or join: a document of its own."""
    for name in document:
        require_known_name(name, tuple(SECTION_HANDLERS), field)
    return parse_document(document)


def apply_deduplicate(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `deduplicate: {by: id, within: 1 hour}`."""
    options = {} if node is True else require_mapping(node, "deduplicate")
    deduplicated_pipeline: Pipeline = call_with_arguments(
        pipeline.deduplicate, [], dict(options), "deduplicate"
    )
    return deduplicated_pipeline


def apply_key(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `key`: a field or a list of fields."""
    return pipeline.key(*require_strings(node, "key"))


def apply_aggregate(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `aggregate`: columns and aggregate calls."""
    columns = require_mapping(node, "aggregate")
    aggregates = {name: parse_aggregate(text, f"aggregate.{name}") for name, text in columns.items()}
    return pipeline.aggregate(**aggregates)


def apply_stateful(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `stateful: {function: module:name, state: module:Class, returns: {column: TYPE}}`."""
    options = dict(require_mapping(node, "stateful"))
    for name in ("function", "state"):
        if name in options:
            options[name] = import_by_name(str(options[name]), f"stateful.{name}")
    if "version" in options:
        options["version"] = str(options["version"])
    stateful_pipeline: Pipeline = call_with_arguments(pipeline.stateful, [], options, "stateful")
    return stateful_pipeline


def apply_window(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `window`."""
    return pipeline.window(parse_keyword(node, WINDOW_KEYWORDS, "window"))


def apply_trigger(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `trigger`: a trigger, lateness and pane policies."""
    if isinstance(node, str):
        return pipeline.trigger(parse_keyword(node, TRIGGER_KEYWORDS, "trigger"))
    options = dict(require_mapping(node, "trigger"))
    trigger_options = {name: options.pop(name) for name in TRIGGER_OPTIONS if name in options}
    triggers = [parse_keyword(options, TRIGGER_KEYWORDS, "trigger")] if options else []
    triggered_pipeline: Pipeline = call_with_arguments(pipeline.trigger, triggers, trigger_options, "trigger")
    return triggered_pipeline


def apply_accumulation(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `accumulation`."""
    return pipeline.accumulation(str(node))


def apply_write(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `write`: one table or several, as in `{table: name, mode: latest}`."""
    for sink in node if isinstance(node, list) else [node]:
        options = {"table": sink} if isinstance(sink, str) else dict(require_mapping(sink, "write"))
        pipeline = call_with_arguments(pipeline.write, [], options, "write")
    return pipeline


def parse_read_panes(node: object) -> Pipeline:
    """Parse `read_panes: {topic: name, columns: {column: TYPE}, lateness: 1 hour}`."""
    panes_pipeline: Pipeline = call_with_arguments(
        read_panes, [], dict(require_mapping(node, "read_panes")), "read_panes"
    )
    return panes_pipeline


def apply_publish(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `publish`: one topic or several."""
    for topic in require_strings(node, "publish"):
        pipeline = pipeline.publish(topic)
    return pipeline


def apply_name(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `name`: a text or a number."""
    require(isinstance(node, str | int), "name", repr(node), "Give a name")
    return pipeline.named(str(node))


def apply_then(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `then`: one downstream stage or several, as documents without `read`."""
    later_stages = []
    for stage_node in node if isinstance(node, list) else [node]:
        document = require_mapping(stage_node, "then")
        for name in document:
            require_known_name(name, LATER_STAGE_SECTIONS, "then")
        later_stages.append(apply_sections(pipeline.then(), document))
    require(
        len(later_stages) > 0, "then", "no stage", "Write the sections of the next stage: key, aggregate, ..."
    )
    return later_stages[0].also(*later_stages[1:])


def apply_also(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `also`: other outputs, as documents with their own inputs, which may read the same topics."""
    other_nodes = node if isinstance(node, list) else [node]
    return pipeline.also(*(parse_document(require_mapping(other_node, "also")) for other_node in other_nodes))


INPUT_SECTIONS: dict[str, Callable[[Any], Pipeline]] = {
    "read": parse_read,
    "union": parse_union,
    "join": parse_join,
    "read_panes": parse_read_panes,
}
PART_SECTIONS = ("read", "deduplicate", "steps")
SECTION_HANDLERS: dict[str, Callable[[Pipeline, Any], Pipeline]] = {
    # Demo settings are not part of the pipeline; the catalog reads them.
    **dict.fromkeys((*INPUT_SECTIONS, "demo"), lambda pipeline, _: pipeline),
    "deduplicate": apply_deduplicate,
    "steps": apply_steps,
    "key": apply_key,
    "aggregate": apply_aggregate,
    "stateful": apply_stateful,
    "rows": lambda pipeline, node: pipeline.rows(require_mapping(node, "rows")),
    "window": apply_window,
    "trigger": apply_trigger,
    "accumulation": apply_accumulation,
    "write": apply_write,
    "publish": apply_publish,
    "name": apply_name,
    "then": apply_then,
    "also": apply_also,
}
LATER_STAGE_SECTIONS = tuple(
    name for name in SECTION_HANDLERS if name not in (*INPUT_SECTIONS, "demo", "deduplicate", "also")
)
