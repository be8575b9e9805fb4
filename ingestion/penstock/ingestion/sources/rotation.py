"""The files that a log was rotated into, and which of them comes after which."""

import os
import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

from penstock.ingestion.errors import SourceError
from penstock.ingestion.sources.heads import Head, begins_with

# More digits are a date.
_DIGITS = 3
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".Z", ".lz4")


class Rotated(NamedTuple):
    """A file of a log: `number` is that of `app.log.2`, None where its name has none, 0 for the log itself."""

    path: Path
    number: int | None
    changed_ns: int
    inode: int


def opened(log: Path, inode: int, head: Head | None, place: int = 0) -> BinaryIO | None:
    """Open the file that was being read, under whatever name it has now; None where it is gone.

    An inode alone is no proof: when a file is deleted, the next one may get it. Where the log was copied and then
    cut in place, the copy is found by its beginning, if there is one only.
    """
    paths = [log, *log.parent.iterdir()]
    for path in paths:
        if _inode(path) == inode and (file := _opened_if(path, inode, head, place)):
            return file
    copies = [path for path in paths[1:] if path.name.startswith(log.stem) and path.is_file()] if head else []
    found = [file for path in copies if (file := _opened_if(path, None, head, place))]
    for file in found[1:]:
        file.close()
    return found[0] if len(found) == 1 else None


def _opened_if(path: Path, inode: int | None, head: Head | None, place: int) -> BinaryIO | None:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None  # Renamed since it was listed.
    status = os.fstat(file.fileno())
    same = inode in (None, status.st_ino) and status.st_size >= place
    if same and (head is None or begins_with(file, head)):
        return file
    file.close()
    return None


def following(log: Path, file: BinaryIO) -> int | None:
    """Return the inode of the file that was begun when this one was rotated away; None where there is none yet.

    Where names are numbered the numbers tell, and raise SourceError where one is missing, which in the middle of a
    rotation may be so for a moment. Else the times of change tell, and what is missing is not seen.
    """
    status = os.fstat(file.fileno())
    found = _files_of(log)
    ours = next((each for each in found if each.inode == status.st_ino), None)
    if ours is not None and ours.number == 0:
        return None
    if ours is not None and ours.number is not None:
        return _numbered(log, ours.number - 1, found)
    later = [each for each in found if each.number != 0 and each.changed_ns > status.st_mtime_ns]
    if later:
        return _usable(log, min(later, key=lambda each: each.changed_ns))
    return next((each.inode for each in found if each.number == 0), None)


def _files_of(log: Path) -> list[Rotated]:
    """Return the log and what it was rotated into, as they are named just now; packed ones too."""
    stem, suffix = re.escape(log.stem), re.escape(log.suffix)
    name = re.compile(rf"{stem}{suffix}(?:[.\-_](\d[\d\-_T]*)(?:\.\w+)?)?|{stem}[.\-_](\d[\d\-_T]*){suffix}")
    found = []
    for entry in os.scandir(log.parent):
        told = name.fullmatch(entry.name)
        if told is not None:
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            number = _number(told[1] or told[2])
            found.append(Rotated(Path(entry.path), number, status.st_mtime_ns, status.st_ino))
    return found


def _number(text: str | None) -> int | None:
    """Return the place in the order that a name says, which a date is not."""
    if text is None:
        return 0
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def _numbered(log: Path, number: int, found: list[Rotated]) -> int | None:
    after = sorted((each for each in found if each.number == number), key=lambda each: len(each.path.name))
    if after:
        return _usable(log, after[0])
    if number == 0:
        return None
    raise SourceError(
        f"{log} was rotated, and number {number} of its files, which comes after what was read, is gone: bring it "
        "back, or use another producer name to begin with what is there"
    )


def _usable(log: Path, file: Rotated) -> int:
    if file.path.suffix in _PACKED:
        raise SourceError(
            f"{file.path} is packed, and comes after what was read of {log}: unpack it beside the log"
        )
    return file.inode


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
