"""A catalog of pipelines for a test, in place of the shipped one."""

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
    """Yield a function that writes a file of the catalog; modules below `../` can be imported."""
    catalog_folder = folder / "catalog"
    catalog_folder.mkdir()
    for owner in (catalog, user_modules):
        patch.setattr(owner, "CATALOG_FOLDER", catalog_folder)
    patch.setattr(catalog, "__path__", [str(catalog_folder)])
    patch.syspath_prepend(str(folder))
    patch.setattr(sys, "dont_write_bytecode", True)  # a file may be written twice within a second

    def write(name: str, text: str) -> Path:
        path = catalog_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")
        return path

    catalog.load_plan.cache_clear()
    yield write
    catalog.load_plan.cache_clear()
    for name, module in list(sys.modules.items()):
        if str(folder) in str(getattr(module, "__file__", "")):
            del sys.modules[name]
