"""Pipelines in SQL: one statement gives the same plan as the equivalent definition in YAML or Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.core.display_path import display_path
from penstock.core.source_tree import SourceNode, find_place
from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.errors import DefinitionError, UnknownNameError
from penstock.stream.pipeline import Pipeline
from penstock.stream.sql_loader.placed_text import list_places, remove_places
from penstock.stream.sql_loader.statement import convert_statement, parse_statement
from penstock.stream.sql_loader.tokens import SqlFile
from penstock.stream.yaml_loader.document import from_document

MISSING = "missing"
"""The problem of a section that a document must have."""


def load_sql(path: Path) -> Pipeline:
    """Load a definition from a SQL file. Raises DefinitionError with all of its problems, each with its place."""
    return _load_file(_open_file(path))


def load_sql_text(text: str, name: str) -> Pipeline:
    """Load a definition from the text of a pipeline of this name."""
    return _load_file(SqlFile(Path(f"{name}.sql"), text))


def _load_file(file: SqlFile) -> Pipeline:
    document = _read_statement(file)
    problems = list(file.collector.problems)
    try:
        pipeline = from_document(remove_places(document))
    except DefinitionError as error:
        located = place_problems(error, SourceNode(1, children=list_places(document)), file.path)
        # What a clause with a problem would have defined is missing, which is no further problem.
        problems += [each for each in located if not problems or each.problem != MISSING]
    if problems:
        raise combine_problems(problems)
    return pipeline


def read_sql_document(path: Path) -> Mapping[str, Any]:
    """Return the document of a SQL file, as a YAML parser would return it."""
    file = _open_file(path)
    document: Mapping[str, Any] = remove_places(_read_statement(file))
    file.collector.raise_problems()
    return document


def read_sql_places(path: Path) -> SourceNode:
    """Return the names and texts of a SQL file with their places. A broken file has none."""
    try:
        return SourceNode(1, children=list_places(_read_statement(_open_file(path))))
    except DefinitionError:
        return SourceNode(1)


def place_problems(error: DefinitionError, root: SourceNode, path: Path) -> list[DefinitionError]:
    """Return the problems of a document, each with the place of what it is about."""
    placed: list[DefinitionError] = []
    for problem in error.problems:
        name = problem.name if isinstance(problem, UnknownNameError) else ""
        line, column = find_place(root, problem.field, name) or (None, None)
        placed.append(problem.with_location(display_path(path, line, column)))
    return placed


def combine_problems(problems: list[DefinitionError]) -> DefinitionError:
    """Return problems as one error, in the order of their places."""
    collector = ProblemCollector()
    for problem in sorted(problems, key=_sort_key):
        collector.add(problem)
    return collector.combine()


def _sort_key(problem: DefinitionError) -> tuple[int, ...]:
    parts = problem.location.rsplit(":", 2)[1:]
    return tuple(int(part) for part in parts if part.isdigit())


def _open_file(path: Path) -> SqlFile:
    try:
        return SqlFile(path, path.read_text("utf-8"))
    except (OSError, ValueError) as problem:
        fix = "Write the file in UTF-8, readable by this user"
        raise DefinitionError("the file", f"cannot be read: {problem}", fix, display_path(path)) from None


def _read_statement(file: SqlFile) -> Mapping[str, Any]:
    try:
        return convert_statement(file, parse_statement(file))
    except DefinitionError as error:
        file.collector.add(error)
        raise combine_problems(list(file.collector.problems)) from None
    except RecursionError:
        raise DefinitionError(
            "the file", "nested too deeply", "Name queries in WITH", display_path(file.path)
        ) from None
