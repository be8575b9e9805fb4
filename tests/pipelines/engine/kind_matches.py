"""Finds code that matches on a kind, instead of asking it: `isinstance`, `case`, `type(x) is` and class names."""

import ast
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import penstock.engine
import penstock.platform
import penstock.quality

SOURCE_FOLDERS = (
    Path(penstock.engine.__path__[0]).parent,
    Path(penstock.quality.__path__[0]),
    Path(penstock.platform.__path__[0]),
)
REFERENCE_FOLDER = SOURCE_FOLDERS[0] / "conformance" / "reference"
"""The reference evaluator is independent of the kinds, so that it may match on them."""


def find_kind_classes(package: ModuleType, base: type) -> set[type]:
    """Return the classes of a package that can be instances of its base class."""
    return {
        member
        for module_info in iter_modules(package.__path__)
        for member in vars(import_module(f"{package.__name__}.{module_info.name}")).values()
        if isinstance(member, type) and issubclass(member, base) and not isabstract(member)
    }


def find_kind_matches(kinds: Iterable[type]) -> list[str]:
    """Return where the source matches on one of these classes, outside of the module that defines the class."""
    names = {kind.__name__ for kind in kinds}
    return [
        f"{path}:{line}"
        for folder in SOURCE_FOLDERS
        for path in sorted(folder.rglob("*.py"))
        if not path.is_relative_to(REFERENCE_FOLDER)
        for line in find_matches(path.read_text(encoding="utf-8"), names)
    ]


def find_matches(source: str, names: set[str]) -> list[int]:
    """Return the lines of a module that match on one of these classes, unless it defines the class itself."""
    tree = ast.parse(source)
    own_names = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return [
        node.lineno for node, matched in _iter_matched_names(tree) if names.intersection(matched) - own_names
    ]


def _iter_matched_names(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.pattern, set[str]]]:
    for node in ast.walk(tree):
        match node:
            case ast.MatchClass(cls=matched_class):
                yield node, _names_in(matched_class)
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, classes]):
                yield node, _names_in(classes)
            case ast.Compare(left=left, comparators=comparators) if _asks_for_class(left):
                yield node, {name for comparator in comparators for name in _names_in(comparator)}


def _asks_for_class(node: ast.expr) -> bool:
    """Return whether an expression is `type(x)`, `x.__class__` or the name of such a class."""
    match node:
        case ast.Call(func=ast.Name(id="type")) | ast.Attribute(attr="__class__" | "__name__"):
            return True
    return False


def _names_in(node: ast.expr) -> set[str]:
    found: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                found.add(name)
    return found
