"""Reads and formats YAML files, and finds the lines of their keys for messages."""

from pathlib import Path
from typing import Any

import yaml

from penstock.core.source_tree import SourceNode
from penstock.ingestion.errors import DocumentError

_LINE_LENGTH = 120


_BOOLEAN_TAG, _TEXT_TAG = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:str"


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that refuses duplicate keys; the standard loader silently drops the first one.

    A key such as `on` or `no` is a text here; YAML 1.1 makes it a boolean.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the node of a mapping as written, before merge keys are resolved."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                message = f"duplicate key {key.value!r}"
                raise yaml.composer.ComposerError(None, None, message, key.start_mark)
            seen.add((key.tag, key.value))
            key.tag = _TEXT_TAG if key.tag == _BOOLEAN_TAG else key.tag
        return node


def read_yaml(path: Path) -> object:
    """Return the content of a file. DocumentError says what is wrong on which line; the caller adds the path."""
    try:
        return yaml.load(path.read_text("utf-8"), _UniqueKeyLoader)  # noqa: S506  # it makes plain data, as SafeLoader does
    except yaml.MarkedYAMLError as error:
        line_number = None if error.problem_mark is None else error.problem_mark.line + 1
        line = "" if line_number is None else f", at line {line_number}"
        reason = str(error.problem or error.context).replace("'<stream end>'", "the end of the file")
        raise DocumentError(f"not valid YAML: {reason}{line}", line_number) from error
    except RecursionError as error:
        raise DocumentError("nested too deeply") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DocumentError(f"cannot be read: {' '.join(str(error).split())}") from error


def format_yaml(document: object, *, short_lines: bool = False) -> str:
    """Return a document as YAML in the order of its keys. With `short_lines`, innermost values take one line."""
    return yaml.safe_dump(
        document,
        sort_keys=False,
        allow_unicode=True,
        width=_LINE_LENGTH,
        default_flow_style=None if short_lines else False,
    )


def read_yaml_lines(path: Path) -> SourceNode:
    """Return the keys and texts of a file with their lines. A file that cannot be read has none."""
    try:
        root = yaml.compose(path.read_text("utf-8"), yaml.SafeLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        root = None
    document = SourceNode(1)
    if root is not None:
        document.children = _list_children(root, {})
    return document


def _list_children(node: yaml.Node, children_by_node: dict[int, list[SourceNode]]) -> list[SourceNode]:
    """Return the nodes of a value. An anchor is converted once, and shared by its aliases."""
    if id(node) in children_by_node:
        return children_by_node[id(node)]
    children = children_by_node[id(node)] = []
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = _list_children(value, children_by_node)
            children.append(SourceNode(key.start_mark.line + 1, str(key.value), children=inner))
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value, start=1):
            inner = _list_children(item, children_by_node)
            children.append(SourceNode(item.start_mark.line + 1, str(number), children=inner))
    else:
        is_block = getattr(node, "style", None) in ("|", ">")
        children.append(SourceNode(node.start_mark.line + 1 + is_block, text=str(node.value)))
    return children
