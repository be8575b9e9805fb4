"""Steps as they are written in YAML."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model.nodes import mapping
from penstock.pipelines.model.pipeline import Pipeline
from penstock.pipelines.model.words import called
from penstock.pipelines.plan.custom import imported
from penstock.pipelines.plan.steps import Select


def stepped(pipeline: Pipeline, node: object) -> Pipeline:
    """Read the steps: `- filter: speed > 50`, `- sql: select ...`, `- apply: module:function` and so on."""
    for step in node if isinstance(node, list) else [node]:
        match step:
            case {"sql": str(text), **rest} if not rest:
                pipeline = pipeline.sql(text)
            case {"apply": str(name), **rest} if set(rest) <= {"version"}:
                pipeline = pipeline.apply(imported(name), _version(rest))
            case {"arrow": str(name), **rest} if set(rest) <= {"version"}:
                pipeline = pipeline.arrow(imported(name, "arrow"), _version(rest))
            case {"lookup": dict(options), **rest} if not rest:
                pipeline = called(pipeline.lookup, [], dict(mapping(options, "lookup")), "lookup")
            case {"filter": str(condition), **rest} if not rest:
                pipeline = pipeline.filter(condition)
            case {"select": list(entries), **rest} if not rest:
                pipeline = _selected(pipeline, entries)
            case {"map": str(name), "returns": dict(returns), **rest} if set(rest) <= {"version"}:
                pipeline = pipeline.map(imported(name, "map"), returns, _version(rest))
            case {"flat_map": str(name), "returns": dict(returns), **rest} if set(rest) <= {"version"}:
                pipeline = pipeline.flat_map(imported(name, "flat_map"), returns, _version(rest))
            case _:
                fix = (
                    "Write filter: CONDITION, select: [COLUMN, ...], sql: SELECT ..., apply: module:function, "
                    "arrow: module:function, lookup: {...}, or map or flat_map: module:function with "
                    "returns: {column: TYPE}"
                )
                raise DefinitionError("steps", repr(step), fix)
    return pipeline


def _selected(pipeline: Pipeline, entries: list[object]) -> Pipeline:
    """Read `select: [user, {bid_price: price}]`: columns, and columns that get another name."""
    columns: list[tuple[str, str]] = []
    for entry in entries:
        match entry:
            case str(name):
                columns.append((name, name))
            case dict(named) if all(isinstance(each, str) for pair in named.items() for each in pair):
                columns += named.items()
            case _:
                fix = "Write a column's name, or {new_name: name}"
                raise DefinitionError("select", repr(entry), fix)
    return replace(pipeline, steps=(*pipeline.steps, Select(tuple(columns))))


def _version(rest: Mapping[Any, Any]) -> str | None:
    """Read what stands for a function's code, where it is given."""
    return str(rest["version"]) if "version" in rest else None
