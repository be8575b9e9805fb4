"""The names by which queries find the tables of a warehouse.

`sensor_minute` has the current rows: `latest/sensor_minute`, or else `complete/` or `final/`. A table of another
kind has its folder as a suffix: `sensor_minute_late`, `sensors_quarantine`. The suffix of `panes/` is `_log`.
"""

import re
from collections.abc import Iterator, Mapping

from penstock.core.names import explain_unknown_name
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, list_warehouse_tables
from penstock.query.errors import UnknownTableError

CURRENT_ROW_FOLDERS = ("latest", "complete", "final")
"""The folders of tables whose rows all count, in the order in which a plain name is searched."""
LOG_FOLDER, LOG_SUFFIX = "panes", "log"
_NAME_PATTERN = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*")
"""What a name of a table consists of: nothing that leads out of the warehouse."""


def find_table_path(warehouse: StoragePath, name: str) -> str:
    """Return the path of a table below the warehouse. Raises UnknownTableError with the nearest name."""
    for path in _list_candidates(name):
        if is_delta_table(warehouse / path):
            return path
    names = list_table_names(warehouse)
    log_name = f"{name}_{LOG_SUFFIX}"
    if log_name in names:
        raise UnknownTableError(
            f"no table has the current rows of {name!r}. Its log is {log_name!r}; "
            "pipelines/docs/which_rows_count.md shows how to sum it"
        )
    raise UnknownTableError(explain_unknown_name("table", name, names))


def list_table_names(warehouse: StoragePath) -> Mapping[str, str]:
    """Return the names of all tables, each with its path below the warehouse."""
    paths = list(list_warehouse_tables(warehouse))
    names: dict[str, str] = {}
    for path in sorted(paths, key=_rank_folder):
        folder, _, name = path.partition("/")
        if folder in CURRENT_ROW_FOLDERS:
            names.setdefault(name, path)
        if names.get(name) != path:
            names[f"{name}_{_suffix_of(folder)}"] = path
    return dict(sorted(names.items()))


def _list_candidates(name: str) -> Iterator[str]:
    """Yield the paths that a table of this name may have, in the order of preference."""
    if not _NAME_PATTERN.fullmatch(name):
        return
    yield from (f"{folder}/{name}" for folder in CURRENT_ROW_FOLDERS)
    base, _, suffix = name.rpartition("_")
    if _NAME_PATTERN.fullmatch(base) and _NAME_PATTERN.fullmatch(suffix):
        yield f"{LOG_FOLDER if suffix == LOG_SUFFIX else suffix}/{base}"


def _suffix_of(folder: str) -> str:
    return LOG_SUFFIX if folder == LOG_FOLDER else folder


def _rank_folder(path: str) -> tuple[int, str]:
    folder = path.partition("/")[0]
    return (
        CURRENT_ROW_FOLDERS.index(folder) if folder in CURRENT_ROW_FOLDERS else len(CURRENT_ROW_FOLDERS),
        path,
    )
