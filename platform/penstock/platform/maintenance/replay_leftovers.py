"""What replays left behind: the folders that streams had before, and what those made that nobody finished."""

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

SECONDS_PER_DAY = 86_400


def list_stream_folders(streams: Path) -> list[Path]:
    """Every folder that some stream keeps or kept its journal in."""
    return [path.parent for path in [*streams.glob("*/journal"), *streams.glob("*/*/journal")]]


def remove_old_folders(streams: Path, days: int, now_ms: int, *, dry_run: bool) -> Iterator[Path]:
    """Remove folders that a stream has left for so many days; yields them. What a replay is at work on stays.

    That of a replay which was cut off before it switched anything, and was not finished since, is among them.
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
                and now_ms / 1000 - max(left_at_s, _last_modified_s(path)) > days * SECONDS_PER_DAY
            ):
                if not dry_run:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                yield path


def remove_leftover_tables(home: Path, warehouse: StoragePath, folder: Path, *, dry_run: bool) -> str | None:
    """Remove the tables that a replay made beside, whose folder goes; returns where they were, None for none.

    They are no results that anybody asked for: a run that was to stay beside has a folder elsewhere.
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
    """When anything in a folder was last written."""
    entries = path.rglob("*") if path.is_dir() else ()
    return max((entry.stat().st_mtime for entry in entries), default=path.stat().st_mtime)
