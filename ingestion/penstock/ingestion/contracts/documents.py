"""YAML files that people write, read so that what is wrong with one is a sentence."""

from pathlib import Path
from typing import Any

import yaml

from penstock.ingestion.errors import DocumentError


class _EachOnce(yaml.SafeLoader):
    """Refuses a key that is said twice at one place: of the two, YAML's own reader drops the first in silence."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the node of a mapping, as it is written: before others are merged into it."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                found = f"{key.value!r} is said twice"
                raise yaml.composer.ComposerError(None, None, found, key.start_mark)
            seen.add((key.tag, key.value))
        return node


def document_in(path: Path) -> object:
    """Return what a file says. DocumentError names what is wrong and on which line; the caller names the file."""
    try:
        return yaml.load(path.read_text("utf-8"), _EachOnce)  # noqa: S506  # it makes plain data, as SafeLoader does
    except yaml.MarkedYAMLError as problem:
        line = "" if problem.problem_mark is None else f", at line {problem.problem_mark.line + 1}"
        said = str(problem.problem or problem.context).replace("'<stream end>'", "the end of the file")
        raise DocumentError(f"it is no YAML: {said}{line}") from problem
    except RecursionError as problem:
        raise DocumentError("it is nested too deep") from problem
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise DocumentError(f"it cannot be read: {' '.join(str(problem).split())}") from problem
