"""Where in a file something is defined: a tree of names and texts with their lines, for messages.

A YAML document and a Python module become the same kind of tree, so that one search finds the line of a problem.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class SourceNode:
    """A key, an item of a list, a call or an argument, with what is in it. A text is a node without a name.

    Nodes may be shared, and may contain themselves, as anchors of YAML allow.
    """

    line: int
    name: str = ""
    text: str = ""
    children: "list[SourceNode]" = field(default_factory=list)

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


def find_line(root: SourceNode, path: str, name: str = "") -> int | None:
    """Return the line of the field at a dotted path, such as `aggregate.total`; None if nothing matches.

    The path may start anywhere in the tree, and ends at the deepest part that exists. Of several matches, one that
    contains `name` wins, the name that a user wrote wrong. Without any match, the line of `name` alone is returned.
    """
    parts = path.split(".")
    for start in range(len(parts)):
        matches = [
            _descend(node, parts[start + 1 :]) for node in root.iter_nodes() if node.name == parts[start]
        ]
        if matches:
            depth = max(reached for reached, _ in matches)
            deepest = [node for reached, node in matches if reached == depth]
            lines = [line for node in deepest if (line := _line_of_name(node, name)) is not None]
            return lines[0] if lines else deepest[0].line
    return _line_of_name(root, name)


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


def _line_of_name(node: SourceNode, name: str) -> int | None:
    if not name:
        return None
    for inner in node.iter_nodes():
        if inner.name == name and inner is not node:
            return inner.line
        if name in inner.text:
            return inner.line + inner.text[: inner.text.index(name)].count("\n")
    return None
