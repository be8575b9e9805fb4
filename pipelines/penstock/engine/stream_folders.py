"""The folders of a stream, and how a replay switches the stream to a new one."""

import os
import re
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from penstock.core.file_sync import sync_folder
from penstock.core.files import write_atomically, write_synced
from penstock.engine.errors import ReplayError

_CURRENT_POINTER, _SWITCH_MARKER = "current", "switching"

CHECKPOINT_FOLDER = "checkpoint"
_WRITER_ID_FILE = "writer-id"
TOPIC_IDS_FILE = "topics.json"
ACCEPTED_SKEW_FILE = "accepted_future_skew"
"""Its existence lets the max future skew of the settings apply to a stream that ran without one."""
STREAM_FOLDER_ENTRIES = (
    *("journal", "state", CHECKPOINT_FOLDER, "ids", "plan.json"),
    *(TOPIC_IDS_FILE, ACCEPTED_SKEW_FILE),
)
"""The entries of a stream's folder, and of each replay's folder in it. A checkpoint's name ends in an epoch."""

_RUN_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=-]{0,99}")
_CHECKPOINT_PATTERN = re.compile(CHECKPOINT_FOLDER + r"(?:\.([0-9]+))?")


def resolve_stream_folder(streams: Path, stream: str) -> Path:
    """Return the folder of journal, state and checkpoint: that of the last replay, or else the stream's own."""
    pointer = current_pointer_path(streams, stream)
    return streams / stream / pointer.read_text("utf-8").strip() if pointer.exists() else streams / stream


def load_or_create_writer_id(streams: Path, stream: str) -> str:
    """Return the id of a stream's folder, by which its tables know their writer; replays and moves keep it."""
    if (writer_id := read_writer_id(streams, stream)) is None:
        path = streams / stream / _WRITER_ID_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{uuid4().hex[:8]}.partial")
        write_synced(partial, uuid4().hex.encode())
        with suppress(FileExistsError):  # another process has created it
            os.link(partial, path)
        partial.unlink()
        sync_folder(path.parent)
        writer_id = path.read_text("utf-8").strip()
    return writer_id


def read_writer_id(streams: Path, stream: str) -> str | None:
    """Return the id of a stream's folder; None if it has none yet."""
    path = streams / stream / _WRITER_ID_FILE
    return path.read_text("utf-8").strip() if path.exists() else None


def current_pointer_path(streams: Path, stream: str) -> Path:
    """Return the file that names the current replay's folder; it does not exist before the first replay."""
    return streams / stream / _CURRENT_POINTER


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the Spark checkpoints of a stream: one for each writer, fenced ones included."""
    return [path for path in folder.glob(f"{CHECKPOINT_FOLDER}*") if _CHECKPOINT_PATTERN.fullmatch(path.name)]


def parse_checkpoint_epoch(checkpoint: Path) -> int:
    """Return the epoch of the lease that wrote a checkpoint; 0 for a checkpoint without an epoch."""
    match = _CHECKPOINT_PATTERN.fullmatch(checkpoint.name)
    return int(match[1] or 0) if match else 0


def is_stream_folder_entry(name: str) -> bool:
    """Whether a stream, or one of its replays, uses this name in its folder."""
    return name in STREAM_FOLDER_ENTRIES or _CHECKPOINT_PATTERN.fullmatch(name) is not None


def is_valid_run_name(name: str) -> bool:
    """Whether a run or a replay may have this name: its folder below the stream's folder has it."""
    is_reserved = name.partition(".")[0] in (
        *STREAM_FOLDER_ENTRIES,
        "plan",
        "standstill",
        _WRITER_ID_FILE,
        _CURRENT_POINTER,
        _SWITCH_MARKER,
    )
    return not is_reserved and _RUN_NAME_PATTERN.fullmatch(name) is not None


def refuse_unfinished_switch(streams: Path, stream: str) -> None:
    """Raise ReplayError if a replay was interrupted while it switched the stream's tables."""
    if replay := read_unfinished_switch(streams, stream):
        raise ReplayError(
            stream,
            f"replay {replay} was interrupted while it switched the tables",
            f"Finish it with `penstock stream replay {stream} --name {replay}`",
        )


def read_unfinished_switch(streams: Path, stream: str) -> str:
    """Return the replay that switches a stream's tables, or was interrupted while it did; empty for none."""
    marker = streams / stream / _SWITCH_MARKER
    return marker.read_text("utf-8").strip() if marker.exists() else ""


def start_switch(streams: Path, stream: str, replay: str) -> None:
    """Mark the switch of tables as started: the stream does not start until it is finished."""
    marker = streams / stream / _SWITCH_MARKER
    marker.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(marker, replay)


def finish_switch(streams: Path, stream: str, replay: str) -> None:
    """Point the stream to the folder of a replay, and remove the mark."""
    write_atomically(streams / stream / _CURRENT_POINTER, replay)
    (streams / stream / _SWITCH_MARKER).unlink(missing_ok=True)
    sync_folder(streams / stream)
