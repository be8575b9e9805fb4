"""Checks of the types of YAML nodes."""

from collections.abc import Mapping
from typing import Any

from penstock.engine.errors import DefinitionError


def as_list(node: object) -> list[Any]:
    """Return the node if it is a list, otherwise a list of this node."""
    return node if isinstance(node, list) else [node]


def require_mapping(node: object, field: str) -> Mapping[str, Any]:
    """Return the node if it is a mapping with string keys, or raise DefinitionError."""
    if isinstance(node, Mapping) and all(isinstance(name, str) for name in node):
        return node
    raise DefinitionError(field, repr(node), "Write names and values, as in `name: value`")


def require_strings(node: object, field: str) -> list[str]:
    """Return the strings of a node that is a string or a list of strings."""
    texts = as_list(node)
    if all(isinstance(text, str) for text in texts):
        return [str(text) for text in texts]
    raise DefinitionError(field, repr(node), "Write a name, or a list of names")
