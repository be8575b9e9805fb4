"""Reads case files: a document with `cases`, a list of cases, or one case per line.

A line with `"header": true` is skipped. A document is JSON, or YAML by the file's extension.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from penstock.engine.errors import TranscriptError


def read_case_nodes(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the cases of a file."""
    text = read_text(path)
    document = (
        parse_yaml_document(text, path) if path.suffix in (".yaml", ".yml") else parse_json_document(text)
    )
    for number, node in enumerate(
        list_cases(document, path) if document else parse_json_lines(text, path), 1
    ):
        if not isinstance(node, Mapping):
            raise TranscriptError(f"{path}: case {number} is not an object. Write one object per case")
        if not node.get("header"):
            yield node


def read_text(path: Path) -> str:
    """Return the text of a file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise TranscriptError(f"{path} cannot be read: {problem.strerror}. Pass a case file") from problem
    except UnicodeDecodeError as problem:
        raise TranscriptError(f"{path} is not UTF-8 text: {problem}. Pass a case file") from problem


def list_cases(document: Any, path: Path) -> Iterable[Any]:
    """Return the cases of a document; refuse a document without cases."""
    match document:
        case {"cases": list(cases)}:
            return cases
        case {"cases": other}:
            raise TranscriptError(f"{path}: `cases` is not a list but {other!r:.80}. Write a list of objects")
        case {"steps": _} | {"window": _} | {"header": _}:
            return [document]
        case list(cases):
            return cases
        case _:
            fix = "Write a document with `cases`, a list of cases, or one case per line"
            raise TranscriptError(f"{path}: the document has no cases. {fix}")


def parse_json_document(text: str) -> Any:
    """Return the document, or None if the text is not one JSON document."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parse_yaml_document(text: str, path: Path) -> Any:
    """Return a YAML document."""
    try:
        document = yaml.safe_load(text)
    except RecursionError as problem:
        raise TranscriptError(f"{path} is nested too deeply. Flatten it") from problem
    except (yaml.YAMLError, ValueError) as problem:
        raise TranscriptError(
            f"{path} is not valid YAML: {' '.join(str(problem).split())}. Fix the syntax"
        ) from problem
    try:
        json.dumps(document, default=str, skipkeys=True)
    except (ValueError, RecursionError) as problem:
        raise TranscriptError(
            f"{path}: an anchor refers to itself. Replace the alias with its content"
        ) from problem
    return document


def parse_json_lines(text: str, path: Path) -> Iterator[Any]:
    """Yield the content of each line."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except RecursionError as problem:
            raise TranscriptError(f"{path}, line {number} is nested too deeply. Flatten it") from problem
        except ValueError as problem:
            location, reason = locate_json_error(problem, text, number)
            raise TranscriptError(
                f"{path}, {location} is not valid JSON: {reason}. Write a document with cases, or one case per line"
            ) from problem


def locate_json_error(problem: ValueError, text: str, number: int) -> tuple[str, str]:
    """Return the location and the reason of a JSON error.

    The location is in the whole file if not even its first line is a case.
    """
    if not any(line.strip() for line in text.split("\n")[: number - 1]):
        try:
            json.loads(text)
        except ValueError as whole_problem:
            problem, number = whole_problem, 1
    match problem:
        case json.JSONDecodeError():
            return f"line {problem.lineno + number - 1}, column {problem.colno}", problem.msg
        case _:
            return f"line {number}", str(problem)
