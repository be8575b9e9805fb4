"""Rotated log files and their order."""

import os
import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

from penstock.ingestion.errors import SourceError
from penstock.ingestion.sources.file_fingerprint import FileFingerprint, matches_fingerprint

# A longer number is a date.
_MAX_NUMBER_DIGITS = 3
_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".Z", ".lz4")


class RotatedFile(NamedTuple):
    """A file of a log. `number` is 2 for `app.log.2`, 0 for the current log, None without a number."""

    path: Path
    number: int | None
    changed_ns: int
    inode: int


def open_rotated_file(
    log: Path, inode: int, fingerprint: FileFingerprint | None, offset: int = 0
) -> BinaryIO | None:
    """Open the file that was being read, under its current name; return None if it is gone.

    An inode alone is not enough: after a file is deleted, a new file may get its inode. If the log was copied and
    then truncated, the copy is identified by its fingerprint, if exactly one file matches.
    """
    paths = [log, *log.parent.iterdir()]
    for path in paths:
        if _read_inode(path) == inode and (file := _open_if_same(path, inode, fingerprint, offset)):
            return file
    copies = (
        [path for path in paths[1:] if path.name.startswith(log.stem) and path.is_file()]
        if fingerprint
        else []
    )
    matching_files = [file for path in copies if (file := _open_if_same(path, None, fingerprint, offset))]
    for file in matching_files[1:]:
        file.close()
    return matching_files[0] if len(matching_files) == 1 else None


def _open_if_same(
    path: Path, inode: int | None, fingerprint: FileFingerprint | None, offset: int
) -> BinaryIO | None:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None  # Renamed since the folder was listed.
    status = os.fstat(file.fileno())
    is_same = inode in (None, status.st_ino) and status.st_size >= offset
    if is_same and (fingerprint is None or matches_fingerprint(file, fingerprint)):
        return file
    file.close()
    return None


def find_next_inode(log: Path, file: BinaryIO) -> int | None:
    """Return the inode of the file that follows a rotated file; None if there is none yet.

    If the names have numbers, the numbers decide. A missing number raises SourceError, which can happen for a
    moment during a rotation. Without numbers, modification times decide, and a missing file goes unnoticed.
    """
    status = os.fstat(file.fileno())
    rotated_files = _list_rotated_files(log)
    current = next((rotated for rotated in rotated_files if rotated.inode == status.st_ino), None)
    if current is not None and current.number == 0:
        return None
    if current is not None and current.number is not None:
        return _find_numbered_inode(log, current.number - 1, rotated_files)
    later = [
        rotated
        for rotated in rotated_files
        if rotated.number != 0 and rotated.changed_ns > status.st_mtime_ns
    ]
    if later:
        return _require_uncompressed(log, min(later, key=lambda rotated: rotated.changed_ns))
    return next((rotated.inode for rotated in rotated_files if rotated.number == 0), None)


def _list_rotated_files(log: Path) -> list[RotatedFile]:
    """Return the log and its rotated files under their current names, including compressed ones."""
    stem, suffix = re.escape(log.stem), re.escape(log.suffix)
    name_pattern = re.compile(
        rf"{stem}{suffix}(?:[.\-_](\d[\d\-_T]*)(?:\.\w+)?)?|{stem}[.\-_](\d[\d\-_T]*){suffix}"
    )
    rotated_files = []
    for entry in os.scandir(log.parent):
        match = name_pattern.fullmatch(entry.name)
        if match is not None:
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            number = _parse_file_number(match[1] or match[2])
            rotated_files.append(RotatedFile(Path(entry.path), number, status.st_mtime_ns, status.st_ino))
    return rotated_files


def _parse_file_number(text: str | None) -> int | None:
    """Return the rotation number in a name; a date is not a number."""
    if text is None:
        return 0
    return int(text) if text.isdecimal() and len(text) <= _MAX_NUMBER_DIGITS else None


def _find_numbered_inode(log: Path, number: int, rotated_files: list[RotatedFile]) -> int | None:
    candidates = sorted(
        (rotated for rotated in rotated_files if rotated.number == number),
        key=lambda rotated: len(rotated.path.name),
    )
    if candidates:
        return _require_uncompressed(log, candidates[0])
    if number == 0:
        return None
    raise SourceError(
        f"{log} was rotated, but its file number {number}, which is next, is missing. "
        "Restore it, or use another producer name to start with the existing files."
    )


def _require_uncompressed(log: Path, file: RotatedFile) -> int:
    if file.path.suffix in _COMPRESSED_SUFFIXES:
        raise SourceError(
            f"{file.path} is compressed, but is the next file of {log}. Decompress it in the same folder."
        )
    return file.inode


def _read_inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
