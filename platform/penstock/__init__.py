"""Penstock: `penstock.open` reads the tables that streams keep.

The packages below this one lie in several folders, so this package has no single location. Tools that require a
namespace package for that, such as the import linter, ask `has_location`. Editors take the first folder that has an
`__init__` file for the whole package, so the other folders have a stub, `__init__.pyi`.
"""

from pkgutil import extend_path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.query.table_reader import TableReader

__all__ = ["open"]
__path__ = extend_path(__path__, __name__)
if __spec__ is not None:
    __spec__.has_location = False


def open(  # noqa: A001 - read as `penstock.open`
    name: str,
    *,
    warehouse: str | None = None,
    version: int | None = None,
    at_batch: int | None = None,
    at_time: "datetime | str | None" = None,
) -> "TableReader":
    """Open a table by the name that `penstock sql` knows it by.

    `sensor_minute` has the current rows, `sensor_minute_log` every pane; pipelines/docs/querying.md lists them.
    The warehouse is that of the settings, or the folder or `s3://` address that you pass. `version` is that of
    Delta; `at_batch` and `at_time` select the version after a batch and at a time. Give one of the three at most.

    Raises UnknownTableError and VersionError, with a sentence that says what to do.

    Example:
        penstock.open("sensor_minute").to_polars(columns=["device", "temperature"], where="temperature > 20")
    """
    from penstock.platform.services.table_opening import open_table

    return open_table(name, warehouse=warehouse, version=version, at_batch=at_batch, at_time=at_time)
