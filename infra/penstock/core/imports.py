"""Imports by name: the member at `module:name`, and the modules of a package."""

from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from penstock.core.errors import ReferenceImportError


def import_reference(reference: str) -> Any:
    """Return the member at `module:name`; the name may have dots. Raise ReferenceImportError if there is none.

    An error that the module itself raises, other than an ImportError, AttributeError, ValueError or TypeError, is
    passed on.
    """
    module, _, path = reference.partition(":")
    try:
        return reduce(getattr, path.split("."), import_module(module))
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ReferenceImportError(str(error)) from error


def import_package_modules(package: str) -> Iterator[ModuleType]:
    """Import and yield each module of a package, without those of its subpackages."""
    for module_info in iter_modules(import_module(package).__path__):
        yield import_module(f"{package}.{module_info.name}")
