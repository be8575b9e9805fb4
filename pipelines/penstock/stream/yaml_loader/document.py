"""Pipelines in YAML. A document gives the same plan as the equivalent Python definition."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, cast

from penstock.core.display_path import display_path
from penstock.core.duration import is_duration
from penstock.engine.aggregates import Aggregate, AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.definition.argument_checks import require, require_known_name
from penstock.engine.definition.keyword import call_with_arguments
from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.definition.synonyms import VERB_SYNONYMS
from penstock.engine.definition.user_functions import import_by_name
from penstock.engine.errors import DefinitionError, UnknownNameError
from penstock.engine.plan.stages import AccumulationMode
from penstock.engine.windows.global_window import Global
from penstock.ingestion.contracts.yaml_files import read_yaml
from penstock.ingestion.errors import DocumentError
from penstock.stream.inputs import join, read, read_panes, union
from penstock.stream.keyword_registries import TRIGGER_KEYWORDS, WINDOW_KEYWORDS
from penstock.stream.pipeline import Pipeline, definition_of
from penstock.stream.pipeline_definition import PipelineDefinition
from penstock.stream.problem_lines import locate_problems
from penstock.stream.yaml_loader.aggregate_calls import parse_aggregate
from penstock.stream.yaml_loader.keywords import parse_keyword
from penstock.stream.yaml_loader.nodes import as_list, require_mapping, require_strings
from penstock.stream.yaml_loader.steps import apply_steps

TRIGGER_OPTIONS = ("lateness", "may_finish", "on_time_pane", "final_pane")


def from_yaml(path: Path) -> Pipeline:
    """Load a definition from a YAML file.

    Args:
        path: the file.

    Raises DefinitionError with all problems of the file, each with its line.
    """
    try:
        document = read_yaml(path)
    except DocumentError as problem:
        raise DefinitionError(
            "the file", problem, "Fix the YAML syntax", display_path(path, problem.line)
        ) from None
    try:
        return from_document(document)
    except DefinitionError as problem:
        raise locate_problems(problem, path) from None


def from_document(document: object, location: str = "") -> Pipeline:
    """Load a definition from a parsed YAML document.

    Args:
        document: what a YAML parser returned: mappings, lists and scalars.
        location: where the document comes from, for messages.

    Raises DefinitionError with all problems of the document.
    """
    try:
        return parse_document(require_mapping(document, "the document"))
    except DefinitionError as problem:
        raise problem.with_location(problem.location or location) from None
    except RecursionError:
        raise DefinitionError("the document", "nested too deeply", "Reduce the nesting", location) from None


def parse_document(document: Mapping[str, Any]) -> Pipeline:
    """Parse a document with an input and other sections. The error lists the problems of all sections."""
    collector = ProblemCollector()
    check_section_names(document, tuple(SECTION_HANDLERS), "the document", collector)
    pipeline = Pipeline(PipelineDefinition())
    with collector.collect():
        pipeline = parse_input(document)
    has_input = len(definition_of(pipeline).inputs) > 0
    pipeline = apply_sections(pipeline, document, collector)
    has_all_steps = len(as_list(document.get("steps", []))) == len(definition_of(pipeline).steps)
    if collector.problems and has_input and has_all_steps:
        list_unknown_fields(pipeline, document.get("aggregate"), collector)
    collector.raise_problems()
    return pipeline


def parse_input(document: Mapping[str, Any]) -> Pipeline:
    """Parse the section with the input of a document, of which there must be one."""
    input_sections = [name for name in INPUT_SECTIONS if name in document]
    if not input_sections:
        raise DefinitionError("read", "missing", "Name a topic, as in read: sensors")
    require(
        len(input_sections) == 1,
        input_sections[-1],
        "together with another input",
        f"Write one of: {', '.join(INPUT_SECTIONS)}",
    )
    return INPUT_SECTIONS[input_sections[0]](document[input_sections[0]])


def check_section_names(
    document: Mapping[str, Any], known_names: Sequence[str], field: str, collector: ProblemCollector
) -> None:
    """Collect the names of sections that do not exist."""
    for name in document:
        with collector.collect():
            problem = f"there is no section {name!r}"
            refuse_option_as_section(name, known_names, field)
            require_known_name(name, known_names, field, problem, "Sections", VERB_SYNONYMS)


def refuse_option_as_section(name: str, known_names: Sequence[str], field: str) -> None:
    """Refuse an option that is written as a section of its own, such as `lateness`."""
    for section, function in SECTIONS_WITH_OPTIONS.items():
        is_option = name not in known_names and name in signature(function).parameters
        if is_option and section in known_names:
            fix = f"Write it under {section}, as in {section}: {{{name}: ...}}"
            raise UnknownNameError(field, f"{name!r} is an option of {section}", fix, name=name)


def apply_sections(pipeline: Pipeline, document: Mapping[str, Any], collector: ProblemCollector) -> Pipeline:
    """Apply all sections of a document to a pipeline. A section with a problem is left out."""
    for name, apply_section in SECTION_HANDLERS.items():
        if name in document:
            with collector.collect():
                pipeline = apply_section(pipeline, document[name])
    return pipeline


def list_unknown_fields(pipeline: Pipeline, aggregates: object, collector: ProblemCollector) -> None:
    """Collect the unknown fields of the sections without a problem, so that users see all problems in one call.

    What a section with a problem would have defined is replaced by something without fields.
    """
    definition = definition_of(pipeline)
    columns = aggregates if isinstance(aggregates, Mapping) else {}
    valid_aggregates = parse_aggregates(columns, ProblemCollector()) or {"records": Count(None)}
    outputs = tuple(AggregateOutput(name, aggregate) for name, aggregate in valid_aggregates.items())
    checked_definition = replace(
        definition,
        window_spec=definition.window_spec or Global(),
        aggregate_outputs=definition.aggregate_outputs or outputs,
    )
    try:
        Pipeline(checked_definition).to_plan("unnamed")
    except DefinitionError as error:
        for problem in error.problems:
            if isinstance(problem, UnknownNameError):
                collector.add(problem.with_location(""))


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
    inputs = as_list(node)
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
    collector = ProblemCollector()
    pipeline = apply_sections(parse_read(document["read"]), document, collector)
    collector.raise_problems()
    return pipeline


def parse_stage(document: Mapping[str, Any], field: str) -> Pipeline:
    """Parse a stage that is part of a union or join: a document of its own."""
    collector = ProblemCollector()
    check_section_names(document, tuple(SECTION_HANDLERS), field, collector)
    collector.raise_problems()
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
    collector = ProblemCollector()
    aggregates = parse_aggregates(require_mapping(node, "aggregate"), collector)
    collector.raise_problems()
    return pipeline.aggregate(**aggregates)


def parse_aggregates(columns: Mapping[str, Any], collector: ProblemCollector) -> dict[str, Aggregate]:
    """Parse the aggregate of each column. Those with a problem are left out, and the problem is collected."""
    aggregates: dict[str, Aggregate] = {}
    for name, text in columns.items():
        with collector.collect():
            aggregates[name] = parse_aggregate(text, f"aggregate.{name}")
    return aggregates


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
    if isinstance(node, str) and is_duration(node):
        every = f"{{every: {node}}}"
        fix = f"Write {{repeatedly: {every}}}, or {{after_watermark: {{early: {every}}}}} for early panes"
        raise DefinitionError("trigger", f"{node!r} is a duration, not a trigger", fix)
    if isinstance(node, str):
        return pipeline.trigger(parse_keyword(node, TRIGGER_KEYWORDS, "trigger"))
    options = dict(require_mapping(node, "trigger"))
    trigger_options = {name: options.pop(name) for name in TRIGGER_OPTIONS if name in options}
    triggers = [parse_keyword(options, TRIGGER_KEYWORDS, "trigger")] if options else []
    triggered_pipeline: Pipeline = call_with_arguments(pipeline.trigger, triggers, trigger_options, "trigger")
    return triggered_pipeline


def apply_accumulation(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `accumulation`."""
    return pipeline.accumulation(cast("AccumulationMode", str(node)))


def apply_write(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `write`: one table or several, as in `{table: name, mode: latest}`."""
    for sink in as_list(node):
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
    later_stages: list[Pipeline] = []
    collector = ProblemCollector()
    for stage_node in as_list(node):
        with collector.collect():
            document = require_mapping(stage_node, "then")
            check_section_names(document, LATER_STAGE_SECTIONS, "then", collector)
            later_stages.append(apply_sections(pipeline.then(), document, collector))
    collector.raise_problems()
    require(
        len(later_stages) > 0, "then", "no stage", "Write the sections of the next stage: key, aggregate, ..."
    )
    return later_stages[0].also(*later_stages[1:])


def apply_also(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `also`: other outputs, as documents with their own inputs, which may read the same topics."""
    other_nodes = as_list(node)
    return pipeline.also(*(parse_document(require_mapping(other_node, "also")) for other_node in other_nodes))


INPUT_SECTIONS: dict[str, Callable[[Any], Pipeline]] = {
    "read": parse_read,
    "union": parse_union,
    "join": parse_join,
    "read_panes": parse_read_panes,
}
SECTIONS_WITH_OPTIONS: Mapping[str, Callable[..., Pipeline]] = {
    "trigger": Pipeline.trigger,
    "read": read,
    "write": Pipeline.write,
    "deduplicate": Pipeline.deduplicate,
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
