"""Steps in YAML."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.engine.definition.keyword import call_with_arguments
from penstock.engine.definition.user_functions import import_by_name
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.steps import SelectStep
from penstock.stream.pipeline import Pipeline
from penstock.stream.yaml_loader.nodes import require_mapping


def apply_steps(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `steps`: `- filter: speed > 50`, `- sql: select ...`, `- apply: module:function` and so on."""
    for step in node if isinstance(node, list) else [node]:
        match step:
            case {"sql": str(text), **rest} if not rest:
                pipeline = pipeline.sql(text)
            case {"apply": str(name), **rest} if set(rest) <= {"version"}:
                pipeline = pipeline.apply(import_by_name(name), _code_version(rest))
            case {"arrow": str(name), **rest} if set(rest) <= {"version"}:
                pipeline = pipeline.arrow(import_by_name(name, "arrow"), _code_version(rest))
            case {"lookup": dict(options), **rest} if not rest:
                pipeline = call_with_arguments(
                    pipeline.lookup, [], dict(require_mapping(options, "lookup")), "lookup"
                )
            case {"filter": str(condition), **rest} if not rest:
                pipeline = pipeline.filter(condition)
            case {"select": list(entries), **rest} if not rest:
                pipeline = _apply_select(pipeline, entries)
            case {"map": str(name), "returns": dict(returns), **rest} if set(rest) <= {"version"}:
                pipeline = pipeline.map(import_by_name(name, "map"), returns, _code_version(rest))
            case {"flat_map": str(name), "returns": dict(returns), **rest} if set(rest) <= {"version"}:
                pipeline = pipeline.flat_map(import_by_name(name, "flat_map"), returns, _code_version(rest))
            case _:
                fix = (
                    "Write filter: CONDITION, select: [COLUMN, ...], sql: SELECT ..., apply: module:function, "
                    "arrow: module:function, lookup: {...}, or map or flat_map: module:function with "
                    "returns: {column: TYPE}"
                )
                raise DefinitionError("steps", repr(step), fix)
    return pipeline


def _apply_select(pipeline: Pipeline, entries: list[object]) -> Pipeline:
    """Parse `select: [user, {bid_price: price}]`: columns, optionally renamed."""
    columns: list[tuple[str, str]] = []
    for entry in entries:
        match entry:
            case str(name):
                columns.append((name, name))
            case dict(named) if all(
                isinstance(name_or_field, str) for pair in named.items() for name_or_field in pair
            ):
                columns += named.items()
            case _:
                fix = "Write a column's name, or {new_name: name}"
                raise DefinitionError("select", repr(entry), fix)
    return replace(pipeline, steps=(*pipeline.steps, SelectStep(tuple(columns))))


def _code_version(other_options: Mapping[Any, Any]) -> str | None:
    """Return the version of a function if it is given."""
    return str(other_options["version"]) if "version" in other_options else None
