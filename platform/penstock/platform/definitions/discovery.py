"""Finds the definitions: every module of this package that has a function `build_definitions`."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages

from dagster import Definitions

from penstock.platform.definitions.context import DefinitionsContext

PACKAGE = "penstock.platform.definitions"
LOCATION_MODULE = f"{PACKAGE}.location"
DefinitionsBuilder = Callable[[DefinitionsContext], Definitions]


def find_definition_builders(package: str = PACKAGE) -> Iterator[DefinitionsBuilder]:
    """Yield the function `build_definitions` of each module that has one, in the order of the module names."""
    for name in sorted(_list_modules(package)):
        builder: DefinitionsBuilder | None = getattr(import_module(name), "build_definitions", None)
        if builder is not None:
            yield builder


def merge_definitions(context: DefinitionsContext, package: str = PACKAGE) -> Definitions:
    """Build the definitions of each module of a package, and merge them."""
    return Definitions.merge(*(build(context) for build in find_definition_builders(package)))


def _list_modules(package: str) -> Iterator[str]:
    """Yield the modules of a package and its subpackages, except the one that loads the definitions."""
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        if module.name != LOCATION_MODULE:
            yield module.name
