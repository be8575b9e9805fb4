"""The folder of a stream, which a replay may have put another in the place of."""

import re
from pathlib import Path

from penstock.pipelines.errors import ReplayError

_CURRENT, _SWITCHING = "current", "switching"

CHECKPOINT = "checkpoint"
OF_A_STREAM = ("journal", "state", CHECKPOINT, "ids", "plan.json")
"""What a stream keeps in its folder, in which each of its replays has one, too. Checkpoints end in an epoch."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=-]{0,99}")
_CHECKPOINT = re.compile(CHECKPOINT + r"(?:\.([0-9]+))?")


def folder_of_stream(streams: Path, stream: str) -> Path:
    """Where a stream keeps journal, state and checkpoint: what its last replay made, or else its own folder."""
    pointer = pointer_of(streams, stream)
    return streams / stream / pointer.read_text("utf-8").strip() if pointer.exists() else streams / stream


def pointer_of(streams: Path, stream: str) -> Path:
    """Return the file that names a stream's folder within its own; there is none before the first replay."""
    return streams / stream / _CURRENT


def checkpoints(folder: Path) -> list[Path]:
    """What writers of a stream left of Spark's checkpoint: one, and of those that were taken over perhaps more."""
    return [path for path in folder.glob(f"{CHECKPOINT}*") if _CHECKPOINT.fullmatch(path.name)]


def epoch_of(checkpoint: Path) -> int:
    """By whose lease it was written; 0 for one of an earlier version, in which all writers had the same."""
    found = _CHECKPOINT.fullmatch(checkpoint.name)
    return int(found[1] or 0) if found else 0


def is_own(name: str) -> bool:
    """Whether a stream, or one of its replays, keeps something under this name in its folder."""
    return name in OF_A_STREAM or _CHECKPOINT.fullmatch(name) is not None


def can_name_a_run(name: str) -> bool:
    """Whether a run or a replay may be called so: its folders are, below the stream's own."""
    taken = name.partition(".")[0] in (*OF_A_STREAM, "plan", "standstill", _CURRENT, _SWITCHING)
    return not taken and _NAME.fullmatch(name) is not None


def check_whole(streams: Path, stream: str) -> None:
    """Raise ReplayError where a replay was cut off while it put its tables in place of the stream's."""
    if name := switching(streams, stream):
        raise ReplayError(
            stream,
            f"replay {name} was cut off while it switched the tables",
            f"Finish it with `penstock stream replay {stream} --name {name}`",
        )


def switching(streams: Path, stream: str) -> str:
    """Return the replay that is switching a stream's tables, or was when it was cut off; empty for none."""
    marker = streams / stream / _SWITCHING
    return marker.read_text("utf-8").strip() if marker.exists() else ""


def begin_switch(streams: Path, stream: str, replay: str) -> None:
    """Note that tables are being switched: the stream must not start until that is done."""
    _write(streams / stream / _SWITCHING, replay)


def end_switch(streams: Path, stream: str, replay: str) -> None:
    """Have the stream go on from what a replay made."""
    _write(streams / stream / _CURRENT, replay)
    (streams / stream / _SWITCHING).unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)
