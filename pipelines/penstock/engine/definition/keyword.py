"""Keywords: the functions that define parts of a pipeline, under the names that YAML and Python use."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar

from penstock.core.duration import is_duration
from penstock.core.errors import UnknownKindError
from penstock.core.kind_registry import KindRegistry
from penstock.core.names import suggest_or_list, with_article
from penstock.engine.definition.argument_checks import require_known_name
from penstock.engine.definition.phrases import join_phrases
from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.definition.synonyms import ARGUMENT_SYNONYMS
from penstock.engine.errors import DefinitionError, UnknownNameError

KeywordFunction = Callable[..., Any]
Function = TypeVar("Function", bound=KeywordFunction)


def keyword(
    name: str,
    *,
    synonyms: tuple[str, ...] = (),
    duration_hint: str = "",
    sql_name: str = "",
    sql_arguments: tuple[str, ...] = (),
) -> Callable[[Function], Function]:
    """Mark a function as the one behind a keyword of pipeline definitions.

    The function takes the arguments as users write them, such as durations as text, and returns a part of a plan.

    Args:
        name: the keyword.
        synonyms: words of other systems, in lower case and without `_`. Messages suggest the keyword for them.
        duration_hint: what to write instead of a bare duration, with `{}` in its place.
        sql_name: the name that standard SQL or Flink has for it, such as `TUMBLE`. In SQL it means the same.
        sql_arguments: the order of positional arguments under that name, where it differs from the function's.
    """

    def mark(function: Function) -> Function:
        function.__dict__.update(
            keyword=name,
            synonyms=synonyms,
            duration_hint=duration_hint,
            sql_name=sql_name,
            sql_arguments=sql_arguments,
        )
        return function

    return mark


def keyword_registry(
    noun: str, package: str, part_class: type[Any], entry_point_group: str = ""
) -> KindRegistry[KeywordFunction]:
    """Return the registry of the keywords whose functions return a `part_class`.

    It scans the package and a group of entry points. By default the group has the name of the package, such as
    `penstock.windows` for `penstock.engine.windows`.
    As `module:name`, a definition may also name a class of parts.
    """

    def name_kind(member: Any) -> str | None:
        name = _keyword_of(member)
        return name if name is not None and _returns(member, part_class) else None

    def is_kind(candidate: Any) -> bool:
        if isinstance(candidate, type):
            return issubclass(candidate, part_class)
        return name_kind(candidate) is not None

    return KindRegistry(
        noun,
        (package,),
        entry_point_group or f"penstock.{package.rpartition('.')[2]}",
        name_kind,
        is_kind,
        "Name a class of this kind, or a function marked with @keyword whose return annotation is "
        + with_article(noun),
    )


def find_keyword(name: str, registry: KindRegistry[KeywordFunction], field: str) -> KeywordFunction:
    """Return the function of a keyword or of a `module:name`. The error suggests the nearest keyword."""
    known_names = registry.kinds_by_name
    if ":" not in name and name not in known_names:
        raise _unknown_keyword(name, registry, field)
    try:
        return registry.find_kind(name)
    except (UnknownKindError, NameError) as error:
        raise DefinitionError(field, str(error), f"Or write one of: {', '.join(known_names)}") from error


def list_synonyms(registry: KindRegistry[KeywordFunction]) -> Mapping[str, str]:
    """Return the words of other systems, and the keyword for each."""
    return {
        synonym: name
        for name, function in registry.kinds_by_name.items()
        for synonym in getattr(function, "synonyms", ())
    }


def call_with_arguments(
    function: KeywordFunction, positional: list[Any], keyword_arguments: dict[str, Any], field: str
) -> Any:
    """Call the function of a keyword. The error lists all arguments that it does not have."""
    function_signature = signature(function)
    parameters = function_signature.parameters
    if all(parameter.kind is not Parameter.VAR_KEYWORD for parameter in parameters.values()):
        collector = ProblemCollector()
        for name in keyword_arguments:
            with collector.collect():
                problem, label = f"there is no argument {name!r}", "Its arguments are"
                require_known_name(name, parameters, field, problem, label, ARGUMENT_SYNONYMS)
        collector.raise_problems()
    try:
        function_signature.bind(*positional, **keyword_arguments)
    except TypeError as problem:
        raise DefinitionError(
            field, str(problem), f"Its arguments are: {', '.join(parameters) or 'none'}"
        ) from None
    return function(*positional, **keyword_arguments)


def _unknown_keyword(name: str, registry: KindRegistry[KeywordFunction], field: str) -> UnknownNameError:
    known_names = registry.kinds_by_name
    hints = [hint for kind in known_names.values() if (hint := getattr(kind, "duration_hint", ""))]
    if hints and is_duration(name):
        fix = f"Write {join_phrases([hint.replace('{}', name) for hint in hints], 'or')}"
        return UnknownNameError(
            field, f"{name!r} is a duration, not {with_article(registry.noun)}", fix, name=name
        )
    label = f"Write one of these, or module:name for {with_article(registry.noun)} of your own"
    fix = suggest_or_list(name, known_names, label, list_synonyms(registry))
    return UnknownNameError(field, f"there is no {registry.noun} {name!r}", fix, name=name)


def _keyword_of(member: Any) -> str | None:
    name = getattr(member, "__dict__", {}).get("keyword")
    return name if isinstance(name, str) and callable(member) and not isinstance(member, type) else None


def _returns(function: KeywordFunction, part_class: type[Any]) -> bool:
    returned = signature(function, eval_str=True).return_annotation
    return isinstance(returned, type) and issubclass(returned, part_class)
