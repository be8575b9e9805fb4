"""Steps in YAML."""

from collections.abc import Callable, Mapping
from typing import Any

from penstock.engine.definition.argument_checks import require_known_name
from penstock.engine.definition.keyword import call_with_arguments
from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.definition.synonyms import VERB_SYNONYMS
from penstock.engine.definition.user_functions import import_by_name
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.steps import SelectStep
from penstock.stream.pipeline import Pipeline, add_step
from penstock.stream.yaml_loader.nodes import as_list, require_mapping

_ROW_FUNCTION_FIX = "Write module:function, with returns: {column: TYPE}"


def apply_steps(pipeline: Pipeline, node: object) -> Pipeline:
    """Parse `steps`: `- filter: speed > 50`, `- sql: select ...`, `- apply: module:function` and so on."""
    collector = ProblemCollector()
    for step in as_list(node):
        with collector.collect():
            pipeline = _apply_step(pipeline, step)
    collector.raise_problems()
    return pipeline


def _apply_step(pipeline: Pipeline, step: object) -> Pipeline:
    names = [name for name in STEP_PARSERS if isinstance(step, Mapping) and name in step]
    if len(names) == 1 and isinstance(step, Mapping):
        (name,) = names
        options = {str(option): value for option, value in step.items() if option != name}
        return STEP_PARSERS[name](pipeline, step[name], options)
    if not names and isinstance(step, Mapping):
        for name in step:
            problem = f"there is no step {name!r}"
            require_known_name(str(name), STEP_PARSERS, "steps", problem, "Steps", VERB_SYNONYMS)
    fix = f"Write one step in each item, as in `- filter: speed > 50`. Steps: {', '.join(STEP_PARSERS)}"
    raise DefinitionError("steps", repr(step), fix)


def _parse_filter(pipeline: Pipeline, condition: object, options: Mapping[str, Any]) -> Pipeline:
    _refuse_options("filter", options, ())
    return pipeline.filter(_require_text("filter", condition, "Write a condition, as in speed > 50"))


def _parse_select(pipeline: Pipeline, entries: object, options: Mapping[str, Any]) -> Pipeline:
    """Parse `select: [user, {bid_price: price}]`: columns, optionally renamed."""
    _refuse_options("select", options, ())
    columns: list[tuple[str, str]] = []
    for entry in as_list(entries):
        match entry:
            case str(name):
                columns.append((name, name))
            case dict(named) if all(isinstance(text, str) for pair in named.items() for text in pair):
                columns += named.items()
            case _:
                fix = "Write a column's name, or {new_name: name}"
                raise DefinitionError("select", repr(entry), fix)
    return add_step(pipeline, SelectStep(tuple(columns)))


def _parse_sql(pipeline: Pipeline, text: object, options: Mapping[str, Any]) -> Pipeline:
    _refuse_options("sql", options, ())
    return pipeline.sql(_require_text("sql", text, "Write a SELECT over the view `input`"))


def _parse_lookup(pipeline: Pipeline, lookup: object, options: Mapping[str, Any]) -> Pipeline:
    _refuse_options("lookup", options, ())
    arguments = dict(require_mapping(lookup, "lookup"))
    looked_up: Pipeline = call_with_arguments(pipeline.lookup, [], arguments, "lookup")
    return looked_up


def _parse_apply(pipeline: Pipeline, function: object, options: Mapping[str, Any]) -> Pipeline:
    returns = _parse_optional_returns("apply", options)
    return pipeline.apply(_import_function("apply", function), _code_version(options), returns=returns)


def _parse_arrow(pipeline: Pipeline, function: object, options: Mapping[str, Any]) -> Pipeline:
    returns = _parse_optional_returns("arrow", options)
    return pipeline.arrow(_import_function("arrow", function), _code_version(options), returns=returns)


def _parse_map(pipeline: Pipeline, function: object, options: Mapping[str, Any]) -> Pipeline:
    returns = _parse_returns("map", options)
    return pipeline.map(_import_function("map", function), returns, _code_version(options))


def _parse_flat_map(pipeline: Pipeline, function: object, options: Mapping[str, Any]) -> Pipeline:
    returns = _parse_returns("flat_map", options)
    return pipeline.flat_map(_import_function("flat_map", function), returns, _code_version(options))


def _parse_returns(step: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    returns = _parse_optional_returns(step, options)
    if returns is None:
        raise DefinitionError(
            f"{step}.returns", "missing", "Declare the columns, as in returns: {word: STRING}"
        )
    return returns


def _parse_optional_returns(step: str, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    _refuse_options(step, options, ("returns", "version"))
    return require_mapping(options["returns"], f"{step}.returns") if "returns" in options else None


def _import_function(step: str, function: object) -> Callable[..., Any]:
    fix = _ROW_FUNCTION_FIX if step in ("map", "flat_map") else "Write module:function"
    imported: Callable[..., Any] = import_by_name(_require_text(step, function, fix), step)
    return imported


def _require_text(step: str, value: object, fix: str) -> str:
    if not isinstance(value, str):
        raise DefinitionError(step, repr(value), fix)
    return value


def _refuse_options(step: str, options: Mapping[str, Any], known_options: tuple[str, ...]) -> None:
    collector = ProblemCollector()
    for name in options:
        with collector.collect():
            problem = f"a step {step} has no option {name!r}"
            require_known_name(name, known_options, "steps", problem, "Its options are")
    collector.raise_problems()


def _code_version(options: Mapping[str, Any]) -> str | None:
    """Return the version of a function if it is given."""
    return str(options["version"]) if "version" in options else None


STEP_PARSERS: Mapping[str, Callable[[Pipeline, object, Mapping[str, Any]], Pipeline]] = {
    "filter": _parse_filter,
    "select": _parse_select,
    "map": _parse_map,
    "flat_map": _parse_flat_map,
    "sql": _parse_sql,
    "apply": _parse_apply,
    "arrow": _parse_arrow,
    "lookup": _parse_lookup,
}
"""The steps, and the parser of each: it gets what is written after the keyword, and the other keys of the item."""
