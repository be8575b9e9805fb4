"""Keywords: the functions that define parts of a pipeline, under the names that YAML and Python use."""

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

from penstock.core.errors import UnknownKindError
from penstock.core.kind_registry import KindRegistry
from penstock.core.names import suggest_name, with_article
from penstock.engine.errors import DefinitionError

KeywordFunction = Callable[..., Any]
Function = TypeVar("Function", bound=KeywordFunction)


def keyword(name: str) -> Callable[[Function], Function]:
    """Mark a function as the one behind a keyword of pipeline definitions.

    The function takes the arguments as users write them, such as durations as text, and returns a part of a plan.
    """

    def mark(function: Function) -> Function:
        function.__dict__["keyword"] = name
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
        suggestion = suggest_name(name, known_names).lstrip()
        fix = f"{suggestion} Write one of: {', '.join(known_names)}, or module:name".lstrip()
        raise DefinitionError(field, f"there is no {registry.noun} {name!r}", fix)
    try:
        return registry.find_kind(name)
    except (UnknownKindError, NameError) as error:
        raise DefinitionError(field, str(error), f"Or write one of: {', '.join(known_names)}") from error


def call_with_arguments(
    function: KeywordFunction, positional: list[Any], keyword_arguments: dict[str, Any], field: str
) -> Any:
    """Call the function of a keyword. If the arguments do not fit, the error lists its parameters."""
    function_signature = signature(function)
    try:
        function_signature.bind(*positional, **keyword_arguments)
    except TypeError as problem:
        parameter_names = ", ".join(function_signature.parameters) or "nothing"
        raise DefinitionError(field, str(problem), f"Its arguments are: {parameter_names}") from None
    return function(*positional, **keyword_arguments)


def _keyword_of(member: Any) -> str | None:
    name = getattr(member, "__dict__", {}).get("keyword")
    return name if isinstance(name, str) and callable(member) and not isinstance(member, type) else None


def _returns(function: KeywordFunction, part_class: type[Any]) -> bool:
    returned = signature(function, eval_str=True).return_annotation
    return isinstance(returned, type) and issubclass(returned, part_class)
