"""Texts of a document that remember their place in the SQL file, so that each message has line and column."""

from collections.abc import Mapping
from typing import Any, Self

from penstock.core.source_tree import SourceNode


class PlacedText(str):
    """A text with line and column. `source` is what the user wrote for it, which may be longer."""

    __slots__ = ("column", "line", "source")

    line: int
    column: int
    source: str

    def __new__(cls, text: str, line: int, column: int, source: str = "") -> Self:
        """Return the text with its place."""
        placed = super().__new__(cls, text)
        placed.line, placed.column, placed.source = line, column, source or text
        return placed

    def renamed(self, text: str) -> "PlacedText":
        """Return another text that stands for the same place."""
        return PlacedText(text, self.line, self.column, self.source)


def remove_places(document: Any) -> Any:
    """Return a document of plain texts."""
    match document:
        case str():
            return str(document)
        case Mapping():
            return {str(name): remove_places(value) for name, value in document.items()}
        case list():
            return [remove_places(item) for item in document]
    return document


def list_places(document: Any) -> list[SourceNode]:
    """Return the names and texts of a document with their places, as the tree in which messages find theirs."""
    match document:
        case PlacedText():
            return [SourceNode(document.line, text=document.source, column=document.column)]
        case Mapping():
            return [_list_entry(name, value) for name, value in document.items()]
        case list():
            return [_list_entry(str(number), item) for number, item in enumerate(document, start=1)]
    return []


def _list_entry(name: str, value: Any) -> SourceNode:
    children = list_places(value)
    if isinstance(name, PlacedText):
        return SourceNode(name.line, str(name), children=children, column=name.column)
    line, column = children[0].place if children else (1, 0)
    return SourceNode(line, name, children=children, column=column)
