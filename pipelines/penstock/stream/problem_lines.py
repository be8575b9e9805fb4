"""Adds file and line to the problems of a definition: `catalog/orders.yaml:12`; in SQL the column, too."""

import ast
from operator import itemgetter
from pathlib import Path

from penstock.core.display_path import display_path
from penstock.core.source_tree import SourceNode, SourcePlace, find_place
from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.errors import DefinitionError, UnknownNameError
from penstock.ingestion.contracts.yaml_files import read_yaml_lines


def locate_problems(error: DefinitionError, file: Path) -> DefinitionError:
    """Return the error with file and line as the location of each problem, sorted by line."""
    root = read_definition_lines(file)
    located_problems: list[tuple[SourcePlace, DefinitionError]] = []
    for problem in error.problems:
        name = problem.name if isinstance(problem, UnknownNameError) else ""
        line, column = find_place(root, problem.field, name) or (0, 0)
        location = display_path(file, line, column)
        located_problems.append(((line, column), problem.with_location(location)))
    collector = ProblemCollector()
    for _, problem in sorted(located_problems, key=itemgetter(0)):
        collector.add(problem)
    return collector.combine()


def read_definition_lines(file: Path) -> SourceNode:
    """Return the names and texts of a pipeline's file with their lines. A broken file has none."""
    if file.suffix == ".py":
        return read_python_lines(file)
    if file.suffix == ".sql":
        from penstock.stream.sql_loader.document import read_sql_places  # imports sqlglot

        return read_sql_places(file)
    return read_yaml_lines(file)


def read_python_lines(file: Path) -> SourceNode:
    """Return the calls, arguments and texts of a Python file with their lines. A broken file has none."""
    try:
        tree = ast.parse(file.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return SourceNode(1)
    return SourceNode(1, children=_list_nodes(tree))


def _list_nodes(node: ast.AST) -> list[SourceNode]:
    """Return the nodes of a syntax tree. The calls of a chain, as in `read(..).key(..)`, follow one another."""
    match node:
        case ast.Call(func=ast.Attribute() as function):
            line = function.end_lineno or node.lineno
            return [*_list_nodes(function.value), _convert_call(function.attr, line, node)]
        case ast.Call(func=ast.Name() as function):
            return [_convert_call(function.id, node.lineno, node)]
        case ast.keyword(arg=str() as name, value=value):
            return [SourceNode(value.lineno, name, children=_list_nodes(value))]
        case ast.Dict(keys=keys, values=values):
            return [
                SourceNode(value.lineno, str(getattr(key, "value", "")), children=_list_nodes(value))
                for key, value in zip(keys, values, strict=True)
            ]
        case ast.Constant(value=str() as text):
            return [SourceNode(node.lineno, text=text)]
    return [inner for child in ast.iter_child_nodes(node) for inner in _list_nodes(child)]


def _convert_call(name: str, line: int, call: ast.Call) -> SourceNode:
    arguments = [inner for argument in (*call.args, *call.keywords) for inner in _list_nodes(argument)]
    return SourceNode(line, name.rstrip("_"), children=arguments)
