"""Syncs files to disk. What is synced survives a power cut, not only the end of the process."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path

MAX_PARALLEL_SYNCS = 16

_reachable_folders: set[tuple[Path, int]] = set()
"""The folders, with their inodes, whose own names this process synced up to the root."""


def sync_files(files: Iterable[Path]) -> None:
    """Sync files together with the names that lead to them. They survive a power cut once the call returns.

    Files are requested at the same time, and folders after them, so that the disk flushes once for many. A file
    that does not exist is skipped. Raises OSError if the disk refuses: nothing that depends on these files may be
    written then.
    """
    unique_files = dict.fromkeys(files)
    folders = dict.fromkeys(file.parent for file in unique_files)
    _sync_together(unique_files)
    _sync_together([*folders, *_list_unreachable(folders)])


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder, after a file in it was created, renamed or removed."""
    _sync_together([folder, *_list_unreachable([folder])])


def sync_tree(folder: Path) -> None:
    """Sync every file below a folder."""
    sync_files(path for path in folder.rglob("*") if path.is_file())


def forget_reachable_folders() -> None:
    """Sync the names of all folders again at the next sync, as a new process does."""
    _reachable_folders.clear()


def _list_unreachable(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the folders that hold the names of these folders, unless they were synced before."""
    for folder in folders:
        with suppress(FileNotFoundError):
            key = (folder, folder.stat().st_ino)
            if key not in _reachable_folders:
                yield from folder.absolute().parents
                _reachable_folders.add(key)


def _sync_together(paths: Iterable[Path]) -> None:
    wanted = dict.fromkeys(paths)
    if len(wanted) <= 1:
        for path in wanted:
            _sync(path)
    else:
        list(_open_pool().map(_sync, wanted))


@cache
def _open_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_PARALLEL_SYNCS, "sync")


def _sync(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    except PermissionError:
        if path.is_dir():  # a folder above the home that belongs to others, and was there before
            return
        raise
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
