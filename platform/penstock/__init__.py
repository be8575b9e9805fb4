"""Penstock: `penstock.open` reads the tables that streams keep.

The packages below this one lie in several folders, so this package has no single location. Tools that require a
namespace package for that, such as the import linter, ask `has_location`. Editors take the first folder that has an
`__init__` file for the whole package, so the other folders have a stub, `__init__.pyi`.
"""

from pkgutil import extend_path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.platform.services.table_opening import open_table as open  # noqa: A004 - read as `penstock.open`

__all__ = ["open"]
__path__ = extend_path(__path__, __name__)
if __spec__ is not None:
    __spec__.has_location = False


def __getattr__(name: str) -> object:
    """Import the reader of tables at its first use: most programs of the platform do without it."""
    if name != "open":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from penstock.platform.services.table_opening import open_table

    return open_table
