"""YAML files that people write, read so that what is wrong with one is a sentence."""

from pathlib import Path
from typing import Any

import yaml

from penstock.ingestion.errors import DocumentError


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a key that is said twice at one place: of the two, YAML's own reader drops the first in silence."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the node of a mapping, as it is written: before others are merged into it."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                message = f"{key.value!r} is said twice"
                raise yaml.composer.ComposerError(None, None, message, key.start_mark)
            seen.add((key.tag, key.value))
        return node


def read_yaml(path: Path) -> object:
    """Return what a file says. DocumentError names what is wrong and on which line; the caller names the file."""
    try:
        return yaml.load(path.read_text("utf-8"), _UniqueKeyLoader)  # noqa: S506  # it makes plain data, as SafeLoader does
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", at line {error.problem_mark.line + 1}"
        reason = str(error.problem or error.context).replace("'<stream end>'", "the end of the file")
        raise DocumentError(f"it is no YAML: {reason}{line}") from error
    except RecursionError as error:
        raise DocumentError("it is nested too deep") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DocumentError(f"it cannot be read: {' '.join(str(error).split())}") from error
