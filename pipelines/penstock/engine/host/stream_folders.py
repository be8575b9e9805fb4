"""The folder of a stream, which a replay may have put another in the place of."""

import re
from pathlib import Path

from penstock.engine.errors import ReplayError

_CURRENT_POINTER, _SWITCH_MARKER = "current", "switching"

CHECKPOINT_FOLDER = "checkpoint"
STREAM_FOLDER_ENTRIES = ("journal", "state", CHECKPOINT_FOLDER, "ids", "plan.json")
"""What a stream keeps in its folder, in which each of its replays has one, too. Checkpoints end in an epoch."""

_RUN_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=-]{0,99}")
_CHECKPOINT_PATTERN = re.compile(CHECKPOINT_FOLDER + r"(?:\.([0-9]+))?")


def resolve_stream_folder(streams: Path, stream: str) -> Path:
    """Where a stream keeps journal, state and checkpoint: what its last replay made, or else its own folder."""
    pointer = current_pointer_path(streams, stream)
    return streams / stream / pointer.read_text("utf-8").strip() if pointer.exists() else streams / stream


def current_pointer_path(streams: Path, stream: str) -> Path:
    """Return the file that names a stream's folder within its own; there is none before the first replay."""
    return streams / stream / _CURRENT_POINTER


def list_checkpoints(folder: Path) -> list[Path]:
    """What writers of a stream left of Spark's checkpoint: one, and of those that were taken over perhaps more."""
    return [path for path in folder.glob(f"{CHECKPOINT_FOLDER}*") if _CHECKPOINT_PATTERN.fullmatch(path.name)]


def parse_checkpoint_epoch(checkpoint: Path) -> int:
    """By whose lease it was written; 0 for one of an earlier version, in which all writers had the same."""
    match = _CHECKPOINT_PATTERN.fullmatch(checkpoint.name)
    return int(match[1] or 0) if match else 0


def is_stream_folder_entry(name: str) -> bool:
    """Whether a stream, or one of its replays, keeps something under this name in its folder."""
    return name in STREAM_FOLDER_ENTRIES or _CHECKPOINT_PATTERN.fullmatch(name) is not None


def is_valid_run_name(name: str) -> bool:
    """Whether a run or a replay may be called so: its folders are, below the stream's own."""
    is_reserved = name.partition(".")[0] in (
        *STREAM_FOLDER_ENTRIES,
        "plan",
        "standstill",
        _CURRENT_POINTER,
        _SWITCH_MARKER,
    )
    return not is_reserved and _RUN_NAME_PATTERN.fullmatch(name) is not None


def refuse_unfinished_switch(streams: Path, stream: str) -> None:
    """Raise ReplayError where a replay was cut off while it put its tables in place of the stream's."""
    if replay := read_unfinished_switch(streams, stream):
        raise ReplayError(
            stream,
            f"replay {replay} was cut off while it switched the tables",
            f"Finish it with `penstock stream replay {stream} --name {replay}`",
        )


def read_unfinished_switch(streams: Path, stream: str) -> str:
    """Return the replay that is switching a stream's tables, or was when it was cut off; empty for none."""
    marker = streams / stream / _SWITCH_MARKER
    return marker.read_text("utf-8").strip() if marker.exists() else ""


def start_switch(streams: Path, stream: str, replay: str) -> None:
    """Note that tables are being switched: the stream must not start until that is done."""
    _write_text_atomic(streams / stream / _SWITCH_MARKER, replay)


def finish_switch(streams: Path, stream: str, replay: str) -> None:
    """Have the stream go on from what a replay made."""
    _write_text_atomic(streams / stream / _CURRENT_POINTER, replay)
    (streams / stream / _SWITCH_MARKER).unlink(missing_ok=True)


def _write_text_atomic(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_path = path.with_name(f"{path.name}.partial")
    partial_path.write_text(text, "utf-8")
    partial_path.replace(path)
