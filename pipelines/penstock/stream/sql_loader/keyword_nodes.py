"""Calls in SQL as keywords of a document: the name of each kind, and its arguments as YAML has them."""

from collections.abc import Sequence
from inspect import Signature, signature
from keyword import iskeyword
from typing import Any

from penstock.core.kind_registry import KindRegistry
from penstock.core.names import find_nearest_name
from penstock.engine.definition.keyword import KeywordFunction, find_keyword
from penstock.engine.errors import DefinitionError
from penstock.stream.keyword_registries import find_nested_registry
from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.tokens import SqlFile
from penstock.stream.sql_loader.values import SqlCall, SqlExpression, SqlName, SqlValue
from penstock.stream.yaml_loader.keywords import list_positional_parameters


def find_sql_keyword(name: str, registry: KindRegistry[KeywordFunction]) -> str:
    """Return the keyword for a name in any case, or of standard SQL; the name itself if there is none."""
    kinds, standard_names = registry.kinds_by_name, list_standard_names(registry)
    return next(
        (known for known in (name, name.lower()) if known in kinds), standard_names.get(name.upper(), name)
    )


def list_standard_names(registry: KindRegistry[KeywordFunction]) -> dict[str, str]:
    """Return the names of standard SQL and Flink, and the keyword of each."""
    named = (
        (str(getattr(kind, "sql_name", "")), keyword) for keyword, kind in registry.kinds_by_name.items()
    )
    return {name: keyword for name, keyword in named if name}


def refuse_misspelt_name(file: SqlFile, call: SqlCall, registry: KindRegistry[KeywordFunction]) -> None:
    """Raise DefinitionError for an unknown name that is like one of standard SQL; the loader knows the keywords."""
    is_known = find_sql_keyword(call.name, registry) in registry.kinds_by_name
    nearest = None if is_known else find_nearest_name(call.name.upper(), list_standard_names(registry))
    if nearest is not None:
        problem = f"there is no {registry.noun} {str(call.name)!r}"
        raise file.problem(registry.noun, problem, f"Did you mean {nearest!r}?", call.name)


def to_keyword_node(value: SqlValue, registry: KindRegistry[KeywordFunction]) -> Any:
    """Return `{keyword: arguments}`, as `parse_keyword` reads it. A value that is no call is returned as it is."""
    if isinstance(value, SqlName):
        value = SqlCall(value.text)
    if not isinstance(value, SqlCall):
        return to_node(value)
    keyword = find_sql_keyword(value.name, registry)
    arguments = to_arguments(value, _find_function(keyword, registry))
    return {value.name.renamed(keyword): arguments}


def _find_function(keyword: str, registry: KindRegistry[KeywordFunction]) -> KeywordFunction | None:
    """Return the function of a keyword or a `module:name`; None for an unknown one, which the loader refuses."""
    try:
        return find_keyword(keyword, registry, registry.noun)
    except DefinitionError:
        return None


def to_arguments(call: SqlCall, function: KeywordFunction | None) -> Any:
    """Return the arguments of a call: a list, a mapping, or None for none."""
    function_signature = Signature() if function is None else signature(function, eval_str=True)
    parameters = function_signature.parameters
    by_position = list_positional_parameters(function_signature, len(call.positional))
    names = _positional_names(call, function)
    if not call.named and names is None:
        positions = [*by_position, *[None] * (len(call.positional) - len(by_position))]
        pairs = zip(call.positional, positions, strict=True)
        return [to_node(value, find_nested_registry(each) if each else None) for value, each in pairs] or None
    first_names = names or [each.name for each in by_position if each is not None]
    arguments: dict[str, SqlValue] = dict(call.named.items())
    for number, value in enumerate(call.positional, start=1):
        name = first_names[number - 1] if number <= len(first_names) else ""
        # An argument too many, or one that is written by name, too, is refused under its number.
        arguments[name if name and name not in call.named else f"#{number}"] = value
    return {
        name: to_node(value, find_nested_registry(parameters[name]) if name in parameters else None)
        for name, value in arguments.items()
    }


def name_positional(call: SqlCall, names: Sequence[str]) -> dict[str, Any]:
    """Return all arguments by name. One too many, or one that is there by name, too, is refused by its number."""
    named: dict[str, Any] = {name: to_node(value) for name, value in call.named.items()}
    for number, value in enumerate(call.positional, start=1):
        name = names[number - 1] if number <= len(names) else ""
        named[call.name.renamed(name if name and name not in call.named else f"#{number}")] = to_node(value)
    return named


def _positional_names(call: SqlCall, function: KeywordFunction | None) -> list[str] | None:
    """Return the names of positional arguments under a standard name, where their order differs."""
    is_standard = call.name.upper() == getattr(function, "sql_name", None)
    names = list(getattr(function, "sql_arguments", ())) if is_standard else []
    return names if names and len(call.positional) <= len(names) else None


def to_node(value: SqlValue, registry: KindRegistry[KeywordFunction] | None = None) -> Any:
    """Return a value as YAML has it; a keyword if the registry of a parameter is given."""
    if registry is not None and isinstance(value, SqlCall | SqlName):
        return to_keyword_node(value, registry)
    match value:
        case SqlName(text) | SqlExpression(text):
            return text
        case SqlCall(name, positional) if name.upper() == "DESCRIPTOR":
            fields = [to_node(field) for field in positional]
            return fields[0] if len(fields) == 1 else fields
        case SqlCall(name):
            return name.renamed(name.source)
        case list(items):
            return [to_node(item) for item in items]
    return value


def to_aggregate_text(file: SqlFile, call: SqlCall, registry: KindRegistry[KeywordFunction]) -> PlacedText:
    """Return an aggregate as the call that YAML has: `top(3, tag, by=uses)`."""
    refuse_misspelt_name(file, call, registry)
    keyword = find_sql_keyword(call.name, registry)
    positional = [_to_argument_text(file, call, value, registry) for value in call.positional]
    named = [f"{name}={_to_argument_text(file, call, value, registry)}" for name, value in call.named.items()]
    arguments = [text for text in (*positional, *named) if text]
    return call.name.renamed(f"{keyword}({', '.join(arguments)})")


def _to_argument_text(
    file: SqlFile, call: SqlCall, value: SqlValue, registry: KindRegistry[KeywordFunction]
) -> str:
    match value:
        case SqlExpression(text) if text == "*":
            return ""
        case int() if call.name.upper() == "COUNT":
            return ""  # COUNT(1) is COUNT(*)
        case SqlCall():
            return to_aggregate_text(file, value, registry)
        case SqlName(text):
            is_plain = all(part.isidentifier() and not iskeyword(part) for part in text.split("."))
            return text if is_plain else repr(str(text))
        case SqlExpression(text):
            fix = f"Write {text} AS value in a query before (WITH), and aggregate the column value"
            raise file.problem(call.name, f"{str(text)!r} is an expression, not a column", fix, text)
        case str(text):
            return repr(str(text))
    return repr(value)
