"""Says why the file of a pipeline cannot be loaded: the line of the user's code, the problem and the fix."""

import re
import traceback
from collections.abc import Collection, Iterable, Mapping
from inspect import signature
from pathlib import Path

import penstock.stream
from penstock.core.display_path import display_path
from penstock.core.names import NO_SYNONYMS, suggest_name
from penstock.engine.definition.keyword import list_synonyms
from penstock.engine.definition.synonyms import ARGUMENT_SYNONYMS
from penstock.engine.errors import DefinitionError
from penstock.stream.keyword_registries import (
    AGGREGATE_KEYWORDS,
    POLICY_KEYWORDS,
    TRIGGER_KEYWORDS,
    WINDOW_KEYWORDS,
)
from penstock.stream.pipeline import Pipeline
from penstock.stream.problem_lines import locate_problems

DEFAULT_FIX = "Fix the file; other pipelines are not affected"

_LIBRARY_FILE = re.compile(r"(?<='penstock\.stream') \(.*\)$")
"""The file that Python appends to a message about an import."""
_UNKNOWN_IMPORT = re.compile(r"cannot import name '(?P<name>\w+)' from 'penstock\.stream")
_UNKNOWN_ARGUMENT = re.compile(r"(?P<function>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")


def locate_failure(error: DefinitionError, file: Path, user_files: Iterable[Path]) -> DefinitionError:
    """Return an error of a definition with the file and line that it is about.

    An error that a call in user code raised has the line of that call. Other errors have a line of the pipeline's
    file that fits the field and the value.
    """
    if lines := _list_user_lines(error, user_files):
        return error.with_location(display_path(*lines[-1]))
    is_located = error.problems[0].location.startswith(display_path(file))
    return error if is_located else locate_problems(error, file)


def describe_failure(error: BaseException, file: Path, user_files: Iterable[Path]) -> DefinitionError:
    """Return the error of a file that Python cannot run, with the line of the user's code that raised it."""
    message = _LIBRARY_FILE.sub("", str(error))
    if isinstance(error, SyntaxError):
        broken_file = Path(error.filename) if error.filename else file
        location = display_path(broken_file, error.lineno)
        return DefinitionError(type(error).__name__, error.msg, DEFAULT_FIX, location)
    lines = _list_user_lines(error, user_files)
    location = display_path(*lines[-1]) if lines else display_path(file)
    if lines and lines[-1][0] != file:
        message = f"{message} (imported by {display_path(*lines[0])})"
    has_fix = isinstance(error, AttributeError) and "Did you mean" in message
    fix = "" if has_fix else (_suggest_correction(error, message) or DEFAULT_FIX).lstrip()
    return DefinitionError(type(error).__name__, message or "no message", fix, location)


def _list_user_lines(error: BaseException, user_files: Iterable[Path]) -> list[tuple[Path, int | None]]:
    """Return the lines of user code that led to an error, the outermost first."""
    files = {str(path): path for path in user_files}
    frames = traceback.extract_tb(error.__traceback__)
    return [(files[frame.filename], frame.lineno) for frame in frames if frame.filename in files]


def _suggest_correction(error: BaseException, message: str) -> str:
    if unknown_import := _UNKNOWN_IMPORT.match(message):
        return _suggest_function(unknown_import["name"])
    if isinstance(error, NameError) and error.name:
        suggestion = _suggest_function(error.name)
        return suggestion or (
            f"Import it: from penstock.stream import {error.name}"
            if error.name in penstock.stream.__all__
            else ""
        )
    if unknown_argument := _UNKNOWN_ARGUMENT.search(message):
        arguments = _list_arguments(unknown_argument["function"])
        suggestion = suggest_name(unknown_argument["name"], arguments, ARGUMENT_SYNONYMS)
        return suggestion or (f"Its arguments are: {', '.join(arguments)}" if arguments else "")
    return ""


def _suggest_function(name: str) -> str:
    if name in penstock.stream.__all__:
        return ""
    registries = (AGGREGATE_KEYWORDS, TRIGGER_KEYWORDS, WINDOW_KEYWORDS, POLICY_KEYWORDS)
    for registry in registries:
        function_names = {keyword: function.__name__ for keyword, function in registry.kinds_by_name.items()}
        synonyms = {word: function_names[keyword] for word, keyword in list_synonyms(registry).items()}
        if name.lower().replace("_", "") in synonyms:
            return suggest_name(name, function_names.values(), synonyms)
    return suggest_name(name, penstock.stream.__all__, NO_SYNONYMS)


def _list_arguments(function_name: str) -> Collection[str]:
    """Return the arguments of a function or method of the public API."""
    function = getattr(penstock.stream, function_name, None) or vars(Pipeline).get(function_name)
    parameters: Mapping[str, object] = {} if function is None else signature(function).parameters
    return [name for name in parameters if name != "self"]
