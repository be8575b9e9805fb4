"""YAML files that people write, read so that what is wrong with one is a sentence."""

from pathlib import Path

import yaml

from penstock.ingestion.errors import DocumentError


def document_in(path: Path) -> object:
    """Return what a file says. DocumentError names what is wrong and on which line; the caller names the file."""
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except yaml.MarkedYAMLError as problem:
        line = "" if problem.problem_mark is None else f", at line {problem.problem_mark.line + 1}"
        said = str(problem.problem or problem.context).replace("'<stream end>'", "the end of the file")
        raise DocumentError(f"it is no YAML: {said}{line}") from problem
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise DocumentError(f"it cannot be read: {' '.join(str(problem).split())}") from problem
