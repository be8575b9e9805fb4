"""What replays left behind: the folders that streams had before, and what those made that nobody finished."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from penstock.pipelines.host.folders import folder_of_stream, is_own, pointer_of, switching
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import remove_below, tables_below

DAY_S = 86_400


def stream_folders(streams: Path) -> list[Path]:
    """Every folder that some stream keeps or kept its journal in."""
    return [path.parent for path in [*streams.glob("*/journal"), *streams.glob("*/*/journal")]]


def remove_old(streams: Path, days: int, now_ms: int, *, dry_run: bool) -> Iterator[Path]:
    """Remove folders that a stream has left for so many days; yields them. What a replay is at work on stays.

    That of a replay which was cut off before it switched anything, and was not finished since, is among them.
    """
    for stream in sorted(path for path in streams.iterdir() if path.is_dir()) if streams.exists() else ():
        current, pointer = folder_of_stream(streams, stream.name), pointer_of(streams, stream.name)
        if switching(streams, stream.name):
            continue
        left = pointer.stat().st_mtime if pointer.exists() else 0.0
        own = [] if current == stream else [path for path in sorted(stream.iterdir()) if is_own(path.name)]
        for path in [*own, *(journal.parent for journal in stream.glob("*/journal"))]:
            if path.exists() and path != current and now_ms / 1000 - max(left, _newest(path)) > days * DAY_S:
                if not dry_run:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                yield path


def tables_left(home: Path, warehouse: Place, folder: Path, *, dry_run: bool) -> str | None:
    """Remove the tables that a replay made beside, whose folder goes; returns where they were, None for none.

    They are no results that anybody asked for: a run that was to stay beside has a folder elsewhere.
    """
    place = Path("runs", folder.parent.name, folder.name)
    if is_own(folder.name) or (home / place).exists() or not any(tables_below(warehouse / place)):
        return None
    if not dry_run:
        remove_below(warehouse / place)
    return str(place)


def _newest(path: Path) -> float:
    """When anything in a folder was last written."""
    inside = path.rglob("*") if path.is_dir() else ()
    return max((each.stat().st_mtime for each in inside), default=path.stat().st_mtime)
