"""Case files: a document with `cases`, or a case a line, in which a line with `"header": true` is skipped.

A document is JSON, or YAML where the file's name says so.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from penstock.pipelines.errors import TranscriptError
from penstock.pipelines.transcripts.dialects import translated


def nodes_in(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the cases of a file as its schema has them, translated where the file speaks another dialect."""
    text = text_of(path)
    document = written_by_hand(text, path) if path.suffix in (".yaml", ".yml") else whole(text)
    for number, node in enumerate(listed(document) or lines(text, path), 1):
        if not isinstance(node, Mapping):
            raise TranscriptError(f"{path}: case {number} is no object. Write one object a case")
        if not node.get("header"):
            yield node


def text_of(path: Path) -> str:
    """Return the text of a file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise TranscriptError(f"{path} cannot be read: {problem.strerror}. Name a file of cases") from problem
    except UnicodeDecodeError as problem:
        raise TranscriptError(f"{path} is no text: {problem}. Name a file of cases") from problem


def listed(document: Any) -> Iterable[Any] | None:
    """Return the cases of a document, or None where it is not one."""
    match document:
        case {"cases": list(cases)}:
            return translated(document, cases)
        case {"steps": _}:
            return [document]
        case list(cases):
            return cases
        case _:
            return None


def whole(text: str) -> Any:
    """Return the document, or None where the text is not one."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def written_by_hand(text: str, path: Path) -> Any:
    """Return a document of YAML."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as problem:
        raise TranscriptError(
            f"{path} is no YAML: {' '.join(str(problem).split())}. Mend its form"
        ) from problem


def lines(text: str, path: Path) -> Iterator[Any]:
    """Yield what each line holds."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except ValueError as problem:
            raise TranscriptError(
                f"{path}, line {number} is no JSON: {problem}. Write a document with cases, or a case a line"
            ) from problem
