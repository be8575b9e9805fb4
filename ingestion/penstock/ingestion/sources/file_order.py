"""The stable order of the files of a folder."""

import os
from pathlib import Path

from penstock.core.file_sync import sync_folder
from penstock.ingestion.errors import SourceError


class FileOrder:
    """Numbers files: a single file, or the files of a growing folder.

    New files are ordered by modification time, then by name. The order is stored at `index`, so that a number means
    the same file after a restart. Files must appear complete: move them into the folder. Names that start with `.`
    or `_`, or end with `.tmp` or `.part`, are ignored.
    """

    def __init__(self, path: Path, index: Path | None = None) -> None:
        self._path = path
        self._index = index
        self._names: list[str] = []
        if not path.exists():
            raise SourceError(f"{path} does not exist. Use an existing file or folder.")
        if path.is_dir() and index is None:
            raise SourceError(f"{path} is a folder. Use an index path, which stores the order of its files.")
        if index is not None and index.exists():
            self._names = index.read_text(encoding="utf-8").splitlines()

    @property
    def is_folder(self) -> bool:
        """Whether these are the files of a folder. Each file of a folder is complete."""
        return self._index is not None

    def find_file(self, number: int) -> Path | None:
        """Return the file with a number, after looking for new files; None if there is none yet."""
        if not self._path.is_dir():
            return self._path if number == 0 else None
        if number >= len(self._names):
            self._scan_folder()
        return self._path / self._names[number] if number < len(self._names) else None

    def _scan_folder(self) -> None:
        known_names = set(self._names)
        new_entries = [
            (entry.stat().st_mtime_ns, entry.name)
            for entry in os.scandir(self._path)
            if entry.is_file() and entry.name not in known_names and _is_complete_file(entry.name)
        ]
        new_names = [name for _, name in sorted(new_entries)]
        if new_names:
            self._append_to_index(new_names)
            self._names += new_names

    def _append_to_index(self, names: list[str]) -> None:
        assert self._index is not None
        self._index.parent.mkdir(parents=True, exist_ok=True)
        with self._index.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in names)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._index.parent)


def _is_complete_file(name: str) -> bool:
    return not name.startswith((".", "_")) and not name.endswith((".tmp", ".part")) and "\n" not in name
