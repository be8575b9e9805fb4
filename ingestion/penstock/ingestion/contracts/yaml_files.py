"""Reads YAML files and reports errors with their line."""

from pathlib import Path
from typing import Any

import yaml

from penstock.ingestion.errors import DocumentError


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that refuses duplicate keys; the standard loader silently drops the first one."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the node of a mapping as written, before merge keys are resolved."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                message = f"duplicate key {key.value!r}"
                raise yaml.composer.ComposerError(None, None, message, key.start_mark)
            seen.add((key.tag, key.value))
        return node


def read_yaml(path: Path) -> object:
    """Return the content of a file. DocumentError says what is wrong on which line; the caller adds the path."""
    try:
        return yaml.load(path.read_text("utf-8"), _UniqueKeyLoader)  # noqa: S506  # it makes plain data, as SafeLoader does
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", at line {error.problem_mark.line + 1}"
        reason = str(error.problem or error.context).replace("'<stream end>'", "the end of the file")
        raise DocumentError(f"not valid YAML: {reason}{line}") from error
    except RecursionError as error:
        raise DocumentError("nested too deeply") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DocumentError(f"cannot be read: {' '.join(str(error).split())}") from error
