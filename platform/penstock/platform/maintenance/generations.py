"""What replays left behind: the folders that streams had before, and tables that were only made to be switched."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from penstock.pipelines.host.folders import folder_of_stream, pointer_of, switching

_OWN = ("journal", "state", "checkpoint", "ids", "plan.json")
DAY_S = 86_400


def stream_folders(streams: Path) -> list[Path]:
    """Every folder that some stream keeps or kept its journal in."""
    return [path.parent for path in [*streams.glob("*/journal"), *streams.glob("*/*/journal")]]


def remove_old(streams: Path, days: int, now_ms: int, *, dry_run: bool) -> Iterator[Path]:
    """Remove folders that a stream has left for so many days; yields them. What a replay is at work on stays."""
    for stream in sorted(path for path in streams.iterdir() if path.is_dir()) if streams.exists() else ():
        current = folder_of_stream(streams, stream.name)
        if current == stream or switching(streams, stream.name):
            continue
        left = pointer_of(streams, stream.name).stat().st_mtime
        for path in [stream / name for name in _OWN] + [j.parent for j in stream.glob("*/journal")]:
            if path.exists() and path != current and now_ms / 1000 - max(left, _newest(path)) > days * DAY_S:
                if not dry_run:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                yield path


def _newest(path: Path) -> float:
    """When anything in a folder was last written."""
    inside = path.rglob("*") if path.is_dir() else ()
    return max((each.stat().st_mtime for each in inside), default=path.stat().st_mtime)
