"""A pipeline as YAML: the same questions, the same answers, the same plan."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.ingestion.contracts.documents import document_in
from penstock.ingestion.errors import DocumentError
from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model.beginnings import join, read, read_panes, union
from penstock.pipelines.model.calls import aggregate_from_text
from penstock.pipelines.model.nodes import mapping, strings
from penstock.pipelines.model.pipeline import Pipeline
from penstock.pipelines.model.steps import stepped
from penstock.pipelines.model.words import TRIGGERS, WINDOWS, called, known, spoken
from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.custom import imported

WHEN = ("lateness", "may_finish", "on_time_pane", "final_pane")


def from_yaml(path: Path) -> Pipeline:
    """Read a definition from a file; errors name the file."""
    try:
        document = document_in(path)
    except DocumentError as problem:
        raise DefinitionError("the file", problem, "Mend its form", str(path)) from None
    return from_document(document, str(path))


def from_document(document: object, where: str = "") -> Pipeline:
    """Read a definition from what a YAML file holds."""
    try:
        return read_document(mapping(document, "the document"))
    except DefinitionError as problem:
        raise problem.located(problem.where or where) from None
    except RecursionError:
        raise DefinitionError("the document", "nested too deep", "Mend its form", where) from None


def read_document(document: Mapping[str, Any]) -> Pipeline:
    """Answer the questions in the order of the sections."""
    for name in document:
        known(name, SECTIONS, "the document")
    begins = [name for name in BEGINNINGS if name in document]
    if not begins:
        raise DefinitionError("read", "not said", "Name a topic, as in read: sensors")
    require(
        len(begins) == 1,
        begins[-1],
        "given beside another beginning",
        f"Write one of: {', '.join(BEGINNINGS)}",
    )
    return answered(BEGINNINGS[begins[0]](document[begins[0]]), document)


def answered(pipeline: Pipeline, document: Mapping[str, Any]) -> Pipeline:
    """Answer the questions of a document that its sections speak of."""
    for name, section in SECTIONS.items():
        if name in document:
            pipeline = section(pipeline, document[name])
    return pipeline


def beginning(node: object) -> Pipeline:
    """Read `sensors`, a list of topics, or a mapping with `topic` and what it says otherwise."""
    if isinstance(node, str | list):
        return read(*strings(node, "read"))
    options = dict(mapping(node, "read"))
    topics = strings(options.pop("topic", options.pop("topics", [])), "read.topic")
    pipeline: Pipeline = called(read, topics, options, "read")
    return pipeline


def united(node: object) -> Pipeline:
    """Read `union`: a list of inputs, each with steps of its own."""
    inputs = node if isinstance(node, list) else [node]
    return union(*(part(each, f"union.{number}") for number, each in enumerate(inputs, start=1)))


def joined(node: object) -> Pipeline:
    """Read `join: {left: {read: clicks}, right: {read: views}, by: user, how: left, take: {...}}`."""
    options = dict(mapping(node, "join"))
    sides = {side: part(options.pop(side, None), f"join.{side}") for side in ("left", "right")}
    found: Pipeline = called(join, [], {**sides, **options}, "join")
    return found


def part(node: object, field: str) -> Pipeline:
    """Read an input of a union or a join: a topic, a document with `read` and steps, or a whole stage."""
    require(node is not None, field, "not said", "Name a topic, or write what begins with `read`")
    document = {"read": node} if isinstance(node, str) else mapping(node, field)
    if not set(document) <= set(PARTS):
        return stage_in(document, field)
    require("read" in document, f"{field}.read", "not said", "Name a topic, as in read: sensors")
    return answered(beginning(document["read"]), document)


def stage_in(document: Mapping[str, Any], field: str) -> Pipeline:
    """Read a stage that takes part by its panes: a document of its own."""
    for name in document:
        known(name, tuple(SECTIONS), field)
    return read_document(document)


def deduplicated(pipeline: Pipeline, node: object) -> Pipeline:
    """Read `deduplicate: {by: id, within: 1 hour}`."""
    options = {} if node is True else mapping(node, "deduplicate")
    found: Pipeline = called(pipeline.deduplicate, [], dict(options), "deduplicate")
    return found


def keyed(pipeline: Pipeline, node: object) -> Pipeline:
    """Read a field, or a list of them."""
    return pipeline.key(*strings(node, "key"))


def aggregated(pipeline: Pipeline, node: object) -> Pipeline:
    """Read columns and calls."""
    columns = mapping(node, "aggregate")
    found = {name: aggregate_from_text(text, f"aggregate.{name}") for name, text in columns.items()}
    return pipeline.aggregate(**found)


def remembered(pipeline: Pipeline, node: object) -> Pipeline:
    """Read `remember: {function: module:name, state: module:Class, returns: {column: TYPE}}`."""
    options = dict(mapping(node, "remember"))
    for name in ("function", "state"):
        if name in options:
            options[name] = imported(str(options[name]), f"remember.{name}")
    if "version" in options:
        options["version"] = str(options["version"])
    found: Pipeline = called(pipeline.remember, [], options, "remember")
    return found


def windowed(pipeline: Pipeline, node: object) -> Pipeline:
    """Read where."""
    return pipeline.window(spoken(node, WINDOWS, "window"))


def triggered(pipeline: Pipeline, node: object) -> Pipeline:
    """Read when: a trigger, and beside it lateness and the policies of panes."""
    if isinstance(node, str):
        return pipeline.trigger(spoken(node, TRIGGERS, "trigger"))
    options = dict(mapping(node, "trigger"))
    when = {name: options.pop(name) for name in WHEN if name in options}
    named = [spoken(options, TRIGGERS, "trigger")] if options else []
    found: Pipeline = called(pipeline.trigger, named, when, "trigger")
    return found


def refined(pipeline: Pipeline, node: object) -> Pipeline:
    """Read how."""
    return pipeline.refine(str(node))


def written(pipeline: Pipeline, node: object) -> Pipeline:
    """Read a table, or several: `{table: name, mode: latest}`."""
    for sink in node if isinstance(node, list) else [node]:
        options = {"table": sink} if isinstance(sink, str) else dict(mapping(sink, "write"))
        pipeline = called(pipeline.write, [], options, "write")
    return pipeline


def relayed(node: object) -> Pipeline:
    """Read `read_panes: {topic: name, columns: {column: TYPE}, lateness: 1 hour}`."""
    found: Pipeline = called(read_panes, [], dict(mapping(node, "read_panes")), "read_panes")
    return found


def published(pipeline: Pipeline, node: object) -> Pipeline:
    """Read a topic, or several."""
    for topic in strings(node, "publish"):
        pipeline = pipeline.publish(topic)
    return pipeline


def named(pipeline: Pipeline, node: object) -> Pipeline:
    """Read the name of a stage; a number is one, nothing is none."""
    require(isinstance(node, str | int), "name", repr(node), "Give a name")
    return pipeline.named(str(node))


def followed(pipeline: Pipeline, node: object) -> Pipeline:
    """Read the stages that go on from this one: a document without `read`, or several of them."""
    ends = []
    for each in node if isinstance(node, list) else [node]:
        document = mapping(each, "then")
        for name in document:
            known(name, LATER, "then")
        ends.append(answered(pipeline.then(), document))
    require(len(ends) > 0, "then", "no stage", "Write what the next stage answers: key, aggregate, ...")
    return ends[0].also(*ends[1:])


def accompanied(pipeline: Pipeline, node: object) -> Pipeline:
    """Read other ends of the pipeline: documents with beginnings of their own, which may read the same topics."""
    others = node if isinstance(node, list) else [node]
    return pipeline.also(*(read_document(mapping(each, "also")) for each in others))


BEGINNINGS: dict[str, Callable[[Any], Pipeline]] = {
    "read": beginning,
    "union": united,
    "join": joined,
    "read_panes": relayed,
}
PARTS = ("read", "deduplicate", "steps")
SECTIONS: dict[str, Callable[[Pipeline, Any], Pipeline]] = {
    # How a pipeline is shown is no part of it: the catalog reads that.
    **dict.fromkeys((*BEGINNINGS, "demo"), lambda pipeline, _: pipeline),
    "deduplicate": deduplicated,
    "steps": stepped,
    "key": keyed,
    "aggregate": aggregated,
    "remember": remembered,
    "rows": lambda pipeline, node: pipeline.rows(mapping(node, "rows")),
    "window": windowed,
    "trigger": triggered,
    "refine": refined,
    "write": written,
    "publish": published,
    "name": named,
    "then": followed,
    "also": accompanied,
}
LATER = tuple(name for name in SECTIONS if name not in (*BEGINNINGS, "demo", "deduplicate", "also"))
