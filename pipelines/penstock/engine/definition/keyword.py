"""Keywords: the functions that define parts of a pipeline, under the names that YAML and Python use."""

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.core.errors import UnknownKindError
from penstock.core.kind_registry import KindRegistry
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


def keyword_registry(noun: str, package: str, part_class: type) -> KindRegistry[KeywordFunction]:
    """Return the registry of the keywords that a package and the entry points `penstock.<noun>s` define.

    As `module:name`, a definition may also name a class that derives from `part_class`.
    """

    def is_kind(candidate: Any) -> bool:
        return _keyword_of(candidate) is not None or (
            isinstance(candidate, type) and issubclass(candidate, part_class)
        )

    return KindRegistry(
        noun,
        (package,),
        f"penstock.{noun.replace(' ', '_')}s",
        _keyword_of,
        is_kind,
        f"Name a class that derives from {part_class.__name__}, or a function marked with @keyword",
    )


def find_keyword(name: str, registry: KindRegistry[KeywordFunction], field: str) -> KeywordFunction:
    """Return the function of a keyword or of a `module:name`. The error suggests the nearest keyword."""
    try:
        return registry.find_kind(name)
    except UnknownKindError as error:
        fix = f"Write one of: {', '.join(registry.kinds_by_name)}"
        raise DefinitionError(field, str(error), fix) from error


def _keyword_of(member: Any) -> str | None:
    name = getattr(member, "__dict__", {}).get("keyword")
    return name if isinstance(name, str) and callable(member) and not isinstance(member, type) else None
