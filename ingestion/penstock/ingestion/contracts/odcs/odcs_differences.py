"""What an import loses: the differences of a document from the one that its contract would be exported as."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LABEL_KEYS = ("physicalName", "name", "property", "server", "username", "value")
_ABSENT: tuple[Any, ...] = (None, False, "", [], {}, -1)
"""Values that mean the same as no value."""
_SUITE = "not imported; a suite of expectations can check it"
_NO_WORD = "not imported; a contract has no word for it"
_METADATA = ("id", "version", "status", "name")
"""Keys at the top whose exported value says nothing about the one in the document."""
_HINTS = {
    "quality": _SUITE,
    "logicalTypeOptions": _SUITE,
    "enum": _SUITE,
    "servers": "not imported, but for the format; the setting kafka.bootstrap_servers names the broker",
    "host": "not imported; the setting kafka.bootstrap_servers names the broker",
    "version": "not imported; the schema registry numbers the versions",
    "id": "not imported; the topic is the identity of a contract",
    "classification": "not imported; if it is data about a person, add personal: true",
    "primaryKey": "not imported; the id of a contract is one required field without parts",
    "partitioned": "not imported; the key of a contract is one required field without parts",
    "schema": "not imported; a contract has one object, which --object selects",
}


@dataclass(frozen=True, slots=True)
class ImportNote:
    """A part of a document that a contract cannot hold as it is: where and what it is, and what was done."""

    path: str
    content: str
    action: str


def label_node(node: Any, number: int) -> str:
    """Return the name of an element of a list, or its number."""
    if isinstance(node, Mapping):
        return next((str(node[key]) for key in _LABEL_KEYS if node.get(key) is not None), str(number))
    return str(number)


def find_losses(
    original: Mapping[str, Any], exported: Mapping[str, Any], reasons: Mapping[str, str]
) -> Iterator[ImportNote]:
    """Yield a note for each value of a document that is absent or different in the export of its contract.

    `reasons` says by path why something could not be imported. Each of them is in a note.
    """
    notes = list(_compare_mappings(original, exported, "", reasons))
    yield from notes
    for path in sorted(reasons.keys() - {note.path for note in notes}):
        yield ImportNote(path, "", f"not imported: {reasons[path]}")


def _compare_mappings(
    original: Mapping[str, Any], exported: Mapping[str, Any], path: str, reasons: Mapping[str, str]
) -> Iterator[ImportNote]:
    for key, value in original.items():
        key_path = f"{path}.{key}".lstrip(".")
        is_same_name = key == "physicalName" and value == exported.get("name")
        if is_same_name or (_is_absent(value) and _is_absent(exported.get(key))):
            continue
        if key in exported and not (key_path in _METADATA and value != exported[key]):
            yield from _compare(value, exported[key], key_path, reasons)
        else:
            yield _note_missing(value, key_path, reasons)


def _compare(value: Any, exported: Any, path: str, reasons: Mapping[str, str]) -> Iterator[ImportNote]:
    if isinstance(value, Mapping) and isinstance(exported, Mapping):
        yield from _compare_mappings(value, exported, path, reasons)
    elif isinstance(value, list) and isinstance(exported, list):
        yield from _compare_lists(value, exported, path, reasons)
    elif value != exported:
        reason = reasons.get(path)
        action = f"not imported: {reason}" if reason else f"imported as {_describe(exported)}"
        yield ImportNote(path, _describe(value), action)


def _compare_lists(
    values: Sequence[Any], exported: Sequence[Any], path: str, reasons: Mapping[str, str]
) -> Iterator[ImportNote]:
    exported_by_label = {label_node(each, number): each for number, each in enumerate(exported, start=1)}
    for number, value in enumerate(values, start=1):
        label = label_node(value, number)
        element_path = f"{path}.{label}"
        if label in exported_by_label:
            # Another element with this name is a duplicate, and missing.
            yield from _compare(value, exported_by_label.pop(label), element_path, reasons)
        else:
            yield _note_missing(value, element_path, reasons)


def _note_missing(value: Any, path: str, reasons: Mapping[str, str]) -> ImportNote:
    if path in reasons:
        return ImportNote(path, _describe(value), f"not imported: {reasons[path]}")
    *_, parent, key = ("", *path.split("."))
    hint = _HINTS.get(key) or _HINTS.get(parent) or _NO_WORD
    return ImportNote(path, _describe(value), hint)


def _is_absent(value: Any) -> bool:
    return any(value is each or (type(value) is type(each) and value == each) for each in _ABSENT)


def _describe(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
