"""Case files: a document with `cases`, or a case a line, in which a line with `"header": true` is skipped.

A document is JSON, or YAML where the file's name says so.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from penstock.pipelines.errors import TranscriptError
from penstock.pipelines.transcripts.dialects import translated


def nodes_in(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the cases of a file as its schema has them, translated where the file speaks another dialect."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise TranscriptError(f"{path} cannot be read: {problem.strerror}. Name a file of cases") from problem
    document = written_by_hand(text, path) if path.suffix in (".yaml", ".yml") else whole(text)
    if isinstance(document, Mapping) and isinstance(document.get("cases"), list):
        yield from translated(document, document["cases"])
    elif isinstance(document, list):
        yield from document
    else:
        yield from lines(text, path)


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
        raise TranscriptError(f"{path} is no YAML: {problem}. Mend its form") from problem


def lines(text: str, path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield a case from each line."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            node = json.loads(line)
        except ValueError as problem:
            raise TranscriptError(
                f"{path}, line {number} is no JSON: {problem}. Write one case a line"
            ) from problem
        if not isinstance(node, Mapping):
            raise TranscriptError(
                f"{path}, line {number} is no case. Write one object a line, or use `cases`"
            )
        if not node.get("header"):
            yield node
