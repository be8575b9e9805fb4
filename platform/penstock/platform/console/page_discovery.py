"""Finds the pages of the console."""

import pkgutil
from importlib import import_module

from starlette.routing import Route

from penstock.platform.console import pages


def discover_routes() -> list[Route]:
    """Return the routes of all pages, in the order of their modules."""
    modules = sorted(module.name for module in pkgutil.iter_modules(pages.__path__))
    return [route for name in modules for route in import_module(f"{pages.__name__}.{name}").ROUTES]
