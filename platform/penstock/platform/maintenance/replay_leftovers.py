"""Removal of what replays leave behind: former folders of streams, and tables of replays that never finished."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import list_warehouse_tables, remove_tree
from penstock.engine.stream_folders import (
    current_pointer_path,
    is_stream_folder_entry,
    read_unfinished_switch,
    resolve_stream_folder,
)


def list_stream_folders(streams: Path) -> list[Path]:
    """Return every folder that contains the journal of a stream, current or former."""
    return [path.parent for path in [*streams.glob("*/journal"), *streams.glob("*/*/journal")]]


def remove_old_folders(streams: Path, retention_ms: int, now_ms: int, *, dry_run: bool) -> Iterator[Path]:
    """Remove folders that streams left longer ago than the retention; yields them.

    This includes folders of replays that were interrupted before their switch. Folders of an unfinished switch
    stay.
    """
    for stream_folder in (
        sorted(path for path in streams.iterdir() if path.is_dir()) if streams.exists() else ()
    ):
        current, pointer = (
            resolve_stream_folder(streams, stream_folder.name),
            current_pointer_path(streams, stream_folder.name),
        )
        if read_unfinished_switch(streams, stream_folder.name):
            continue
        left_at_s = pointer.stat().st_mtime if pointer.exists() else 0.0
        own_entries = (
            []
            if current == stream_folder
            else [path for path in sorted(stream_folder.iterdir()) if is_stream_folder_entry(path.name)]
        )
        for path in [*own_entries, *(journal.parent for journal in stream_folder.glob("*/journal"))]:
            if (
                path.exists()
                and path != current
                and now_ms - max(left_at_s, _last_modified_s(path)) * 1000 > retention_ms
            ):
                if not dry_run:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                yield path


def remove_leftover_tables(home: Path, warehouse: StoragePath, folder: Path, *, dry_run: bool) -> str | None:
    """Remove the tables of a replay whose folder is removed; return their path, None if there are none.

    They are not kept: a replay without a switch has its folder elsewhere.
    """
    run_path = Path("runs", folder.parent.name, folder.name)
    if (
        is_stream_folder_entry(folder.name)
        or (home / run_path).exists()
        or not any(list_warehouse_tables(warehouse / run_path))
    ):
        return None
    if not dry_run:
        remove_tree(warehouse / run_path)
    return str(run_path)


def _last_modified_s(path: Path) -> float:
    """Return when any file of a folder was last written."""
    entries = path.rglob("*") if path.is_dir() else ()
    return max((entry.stat().st_mtime for entry in entries), default=path.stat().st_mtime)
