"""Golden homes as files: packed without any name of the machine that made them, and unpacked again."""

import shutil
import socket
import sqlite3
import tarfile
from pathlib import Path

ARCHIVE_NAME = "home.tar.xz"
NEUTRAL_PATH, NEUTRAL_HOST = "/golden-home", "golden-host"
REBUILT = ("spark", "jars")
"""Folders of the platform's home that the host makes anew at each start."""
HOST_COLUMNS = (("leases", "holder"), ("hosts", "host"))
"""Where the control store has the name of a host; it starts with that of the machine."""


def pack_home(root: Path, target: Path) -> None:
    """Pack a home whose programs have stopped; raise ValueError if a name of this machine is left in it."""
    for name in REBUILT:
        shutil.rmtree(root / ".penstock" / name, ignore_errors=True)
    for cache in root.rglob("__pycache__"):
        shutil.rmtree(cache)
    _neutralize_paths(root)
    _neutralize_hosts(root / ".penstock" / "control.db")
    if leaks := find_machine_names(root):
        raise ValueError(
            f"The names of this machine are in {', '.join(leaks)}. Neutralize them before packing"
        )
    with tarfile.open(target, "w:xz") as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, str(path.relative_to(root)), recursive=False, filter=_without_owner)


def unpack_home(archive: Path, root: Path) -> None:
    """Unpack a golden home into a new folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="data")


def find_machine_names(root: Path) -> list[str]:
    """Return the files that contain the path of the home, a temporary folder, the checkout or the host's name."""
    checkout = Path(__file__).parents[2]
    names = (root, root.parent, checkout, Path.home(), Path(socket.gethostname()))
    forbidden = [str(name).encode() for name in names if len(str(name)) > len("/root")]
    return [str(path) for path in sorted(root.rglob("*")) if path.is_file() and _contains(path, forbidden)]


def _contains(path: Path, names: list[bytes]) -> bool:
    content = path.read_bytes()
    return any(name in content for name in names)


def _neutralize_paths(root: Path) -> None:
    """Replace the path of the home in the logs of Delta tables, which note where a table was created."""
    for log in root.rglob("_delta_log/*.json"):
        log.write_bytes(log.read_bytes().replace(str(root).encode(), NEUTRAL_PATH.encode()))


def _neutralize_hosts(control_store: Path) -> None:
    connection = sqlite3.connect(control_store)
    with connection:
        for table, column in HOST_COLUMNS:
            update = f"UPDATE {table} SET {column} = replace({column}, ?, ?)"
            connection.execute(update, (socket.gethostname(), NEUTRAL_HOST))
    connection.execute("VACUUM")
    connection.close()


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry
