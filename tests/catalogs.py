"""A catalog of pipelines that is a test's own, in the place of the shipped one."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from penstock.engine import user_modules
from penstock.pipelines import catalog

WriteCatalogFile = Callable[[str, str], Path]

PIPELINE_TEMPLATE = """
    from penstock.stream import count, fixed, read

    {name} = read("sensors").aggregate(n=count()).window(fixed("1 minute")).write("{name}")
"""


@contextmanager
def use_test_catalog(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[WriteCatalogFile]:
    """Yields what writes a file of the catalog; below `../` are modules that can be imported."""
    inside = folder / "catalog"
    inside.mkdir()
    for owner in (catalog, user_modules):
        patch.setattr(owner, "CATALOG_FOLDER", inside)
    patch.setattr(catalog, "__path__", [str(inside)])
    patch.syspath_prepend(str(folder))
    patch.setattr(sys, "dont_write_bytecode", True)  # two writings within a second are two files

    def write(name: str, text: str) -> Path:
        path = inside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
        return path

    catalog.load_plan.cache_clear()
    yield write
    catalog.load_plan.cache_clear()
    for name, module in list(sys.modules.items()):
        if str(folder) in str(getattr(module, "__file__", "")):
            del sys.modules[name]
