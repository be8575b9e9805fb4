"""Where in a file something is defined: a tree of names and texts with their lines, for messages.

A YAML document and a Python module become the same kind of tree, so that one search finds the line of a problem.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(eq=False)
class SourceNode:
    """A key, an item of a list, a call or an argument, with what is in it. A text is a node without a name.

    Nodes may be shared, and may contain themselves, as anchors of YAML allow.
    """

    line: int
    name: str = ""
    text: str = ""
    children: "list[SourceNode]" = field(default_factory=list)
    column: int = 0
    """The column, from 1; 0 if it is unknown."""

    @property
    def place(self) -> "SourcePlace":
        """The line and the column."""
        return self.line, self.column

    def iter_nodes(self) -> "Iterator[SourceNode]":
        """Yield this node and all nodes in it, each once, in the order of the file."""
        seen: set[int] = set()
        pending = [self]
        while pending:
            node = pending.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                pending += reversed(node.children)


SourcePlace: TypeAlias = tuple[int, int]
"""A line and a column, from 1; a column of 0 is unknown."""


def find_line(root: SourceNode, path: str, name: str = "") -> int | None:
    """Return the line of the field at a dotted path, as `find_place` finds it."""
    place = find_place(root, path, name)
    return None if place is None else place[0]


def find_place(root: SourceNode, path: str, name: str = "") -> SourcePlace | None:
    """Return the place of the field at a dotted path, such as `aggregate.total`; None if nothing matches.

    The path may start anywhere in the tree, and ends at the deepest part that exists. Of several matches, one that
    contains `name` wins, the name that a user wrote wrong. Without any match, that of `name` alone is
    returned.
    """
    parts = path.split(".")
    for start in range(len(parts)):
        matches = [
            _descend(node, parts[start + 1 :]) for node in root.iter_nodes() if node.name == parts[start]
        ]
        if matches:
            depth = max(reached for reached, _ in matches)
            deepest = [node for reached, node in matches if reached == depth]
            places = [place for node in deepest if (place := _place_of_name(node, name)) is not None]
            return places[0] if places else deepest[0].place
    return _place_of_name(root, name)


def _descend(node: SourceNode, parts: list[str]) -> tuple[int, SourceNode]:
    """Follow a path from a node as deep as it exists, through the items of lists."""
    depth = 0
    for part in parts:
        items = [item for child in node.children for item in (child, *_list_items(child))]
        inner = next((item for item in items if item.name == part), None)
        if inner is None:
            break
        node, depth = inner, depth + 1
    return depth, node


def _list_items(node: SourceNode) -> list[SourceNode]:
    return node.children if node.name.isdigit() else []


def _place_of_name(node: SourceNode, name: str) -> SourcePlace | None:
    if not name:
        return None
    for inner in node.iter_nodes():
        if inner.name == name and inner is not node:
            return inner.place
        if name in inner.text:
            before = inner.text[: inner.text.index(name)]
            lines = before.count("\n")
            column = len(before) - before.rindex("\n") if lines else inner.column + len(before)
            return inner.line + lines, column if inner.column else 0
    return None
