"""The keys that a function from dict to dict reads and returns, found in its source.

`row["amount"]` and `row.get("amount")` read a field, and `return {"tax": ...}` names result columns. A function
that changes its argument, tests for a key, or is not plain enough, is left to run.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class RecordKey:
    """A key in the source of a function, and its line."""

    name: str
    line: int


@dataclass(frozen=True)
class RecordKeys:
    """What a function reads from its record, and the keys of the dicts that it returns."""

    file: str
    read: tuple[RecordKey, ...]
    returned: tuple[tuple[RecordKey, ...], ...]
    """The keys of each dict that is written out after `return` or `yield`."""


def find_record_keys(function: Callable[..., Any]) -> RecordKeys | None:
    """Return the keys that a function uses; None if its source is not found."""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_varnames:
        return None
    node = _find_function(code.co_filename, code.co_firstlineno, code.co_name, code.co_varnames[0])
    if node is None:
        return None
    record = code.co_varnames[0]
    read = () if _may_change(node, record) else tuple(_iter_read_keys(node, record))
    return RecordKeys(code.co_filename, read, tuple(_iter_returned_keys(node)))


@cache
def _parse_file(file: str, _modified_ns: int) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_text("utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
        return None


def _find_function(file: str, line: int, name: str, argument: str) -> FunctionNode | None:
    """Return the only function of this name and first argument that starts at a line; None if it is not certain."""
    try:
        module = _parse_file(file, Path(file).stat().st_mtime_ns)
    except OSError:
        return None
    functions = [
        node
        for node in (ast.walk(module) if module is not None else ())
        if isinstance(node, FunctionNode)
        and _first_line(node) == line
        and getattr(node, "name", "<lambda>") == name
        and [*node.args.posonlyargs, *node.args.args][:1]
        and [*node.args.posonlyargs, *node.args.args][0].arg == argument
    ]
    return functions[0] if len(functions) == 1 else None


def _first_line(node: FunctionNode) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _may_change(node: FunctionNode, record: str) -> bool:
    """Whether the function assigns to its record, so that it may have other keys than the input."""
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name == record:
                return True
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name == record:
                return True
            case ast.Attribute(value=ast.Name(id=name), attr="update" | "setdefault" | "pop") if (
                name == record
            ):
                return True
            case ast.ExceptHandler() | ast.FunctionDef() | ast.Lambda() if inner is not node:
                return True  # it may expect a missing key, or use the name for something else
    return False


def _iter_read_keys(node: FunctionNode, record: str) -> Iterator[RecordKey]:
    tested_keys = {
        compare.left.value
        for compare in ast.walk(node)
        if isinstance(compare, ast.Compare) and isinstance(compare.left, ast.Constant)
    }
    for inner in ast.walk(node):
        match inner:
            case (
                ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key)))
                | ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="get"),
                    args=[ast.Constant(value=str(key)), *_],
                )
            ) if name == record and key not in tested_keys:
                yield RecordKey(key, inner.lineno)


def _iter_returned_keys(node: FunctionNode) -> Iterator[tuple[RecordKey, ...]]:
    """Yield the keys of each dict that is returned or yielded as it is written, without `**`."""
    results = [node.body] if isinstance(node, ast.Lambda) else []
    results += [
        inner.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Return | ast.Yield) and inner.value is not None
    ]
    for result in results:
        for item in _iter_result_dicts(result):
            keys = [key for key in item.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            if keys and len(keys) == len(item.keys):
                yield tuple(RecordKey(str(key.value), key.lineno) for key in keys)


def _iter_result_dicts(result: ast.expr) -> Iterator[ast.Dict]:
    match result:
        case ast.Dict():
            yield result
        case ast.List(elts=items) | ast.Tuple(elts=items):
            yield from (item for item in items if isinstance(item, ast.Dict))
        case ast.ListComp(elt=ast.Dict() as item) | ast.GeneratorExp(elt=ast.Dict() as item):
            yield item
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*_iter_result_dicts(body), *_iter_result_dicts(orelse))


def is_generator(function: Callable[..., Any]) -> bool:
    """Whether a call returns a generator, and not one result."""
    return inspect.isgeneratorfunction(function)
