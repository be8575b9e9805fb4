"""The jars that Spark and the local broker run from: fetched once, checked against the lock.

The lock (`jars.lock`, beside this file) names each jar by its Maven coordinates and its SHA-256. A jar
is in the folder only when its hash was right: downloads happen in a folder of their own and are moved
in one by one, under a lock between processes, so a fetch that is killed leaves nothing to be mistaken
for a jar.
"""

import argparse
import fcntl
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import PenstockError
from penstock.infra.errors import JarDownloadError, JarLockError, JarMismatchError
from penstock.infra.ivy import JarProgress, JarRequest, MavenCoordinates, fetch_jars, ignore_progress

JAR_SETS = ("spark", "kafka", "tools", "store")
RUNTIME_JAR_SETS = ("spark", "kafka")
"""What the platform runs from; `tools` adds Kafka's own command-line tools to the broker's jars,
`store` lets Spark read an object store."""
LOCK_FILE = Path(__file__).with_name("jars.lock")
REQUIRED_FREE_BYTES = 300 * 1024 * 1024
"""What a fetch of every set may take while it runs; the jars themselves are about 100 MB."""

_INCOMING_PREFIX = ".incoming-"


@dataclass(frozen=True)
class LockedJar:
    """A line of the lock: what the jar is, what its bytes must be, and who needs it."""

    sha256: str
    coordinates: MavenCoordinates
    jar_set: str

    @property
    def file_name(self) -> str:
        """The name that the jar has in the jar folder."""
        return self.coordinates.file_name


def read_jar_lock(lock_file: Path = LOCK_FILE) -> list[LockedJar]:
    """Read the lock. Raises JarLockError that names the line which cannot be read."""
    try:
        lines = lock_file.read_text("utf-8").splitlines()
    except OSError as error:
        raise JarLockError(f"The lock of the jars, {lock_file}, cannot be read: {error.strerror}.") from error
    numbered_lines = (
        (number, line) for number, line in enumerate(lines, 1) if line and not line.startswith("#")
    )
    return [_parse_lock_line(lock_file, number, line) for number, line in numbered_lines]


def ensure_jars(
    directory: Path,
    jar_sets: Sequence[str] = RUNTIME_JAR_SETS,
    progress: JarProgress = ignore_progress,
    lock_file: Path = LOCK_FILE,
    repository: str | None = None,
) -> list[Path]:
    """Have every jar of these sets in the folder, each with the SHA-256 of the lock.

    Fetches only what is missing or wrong, and nothing when all is right (that costs one hash of each
    jar). Raises JarDownloadError or JarMismatchError; the jars that came right before that stay, so a
    second call goes on from there. `repository` is the address of a mirror; Ivy's default without it.
    """
    required = [jar for jar in read_jar_lock(lock_file) if jar.jar_set in jar_sets]
    if not _missing_or_corrupt(directory, required):
        return _jar_paths(directory, required)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _lock_jar_directory(directory):
            missing = _missing_or_corrupt(directory, required)
            if missing:
                _require_free_space(directory)
                _fetch_missing(directory, missing, progress, repository)
    except OSError as error:
        raise JarDownloadError(
            f"The jars cannot be put into {directory}: {error.strerror}. Make the folder writable, with "
            f"{REQUIRED_FREE_BYTES // 1024**2} MB free, and try again."
        ) from error
    return _jar_paths(directory, required)


def spark_jars(directory: Path, *jar_sets: str) -> list[Path]:
    """Return the jars that Spark takes beside those of its wheel; see ensure_jars for having them."""
    return _jar_paths(directory, [jar for jar in read_jar_lock() if jar.jar_set in (jar_sets or ("spark",))])


def find_missing_jars(
    directory: Path, jar_sets: Sequence[str] = RUNTIME_JAR_SETS, lock_file: Path = LOCK_FILE
) -> list[str]:
    """Return the names of the jars that are absent or whose bytes are not the lock's; empty is good."""
    return [
        jar.file_name
        for jar in _missing_or_corrupt(
            directory, [jar for jar in read_jar_lock(lock_file) if jar.jar_set in jar_sets]
        )
    ]


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parse_lock_line(lock_file: Path, number: int, line: str) -> LockedJar:
    fields = line.split()
    coordinate_parts = fields[1].split(":") if len(fields) == 3 else []
    if len(coordinate_parts) != 3 or len(fields[0]) != 64 or fields[2] not in JAR_SETS:
        raise JarLockError(
            f"Line {number} of {lock_file} is not `sha256 group:artifact:version set`: {line!r}. "
            "Make the lock again with `make lock`."
        )
    return LockedJar(fields[0], MavenCoordinates(*coordinate_parts), fields[2])


def _missing_or_corrupt(directory: Path, required: Iterable[LockedJar]) -> list[LockedJar]:
    return [jar for jar in required if not _is_intact(directory / jar.file_name, jar)]


def _is_intact(path: Path, jar: LockedJar) -> bool:
    try:
        return hash_file(path) == jar.sha256
    except (FileNotFoundError, NotADirectoryError):
        return False


def _jar_paths(directory: Path, jars: Iterable[LockedJar]) -> list[Path]:
    return [directory / jar.file_name for jar in jars]


def _require_free_space(directory: Path) -> None:
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < REQUIRED_FREE_BYTES:
        raise JarDownloadError(
            f"Fetching the jars needs {REQUIRED_FREE_BYTES // 1024**2} MB and {directory} has "
            f"{free_bytes // 1024**2} MB free. Free some space and try again."
        )


def _fetch_missing(
    directory: Path, missing: Sequence[LockedJar], progress: JarProgress, repository: str | None
) -> None:
    mismatched, reasons = [], []
    # One fetch a set: two sets may hold one artifact in two versions, of which Ivy would keep one.
    for jar_set in JAR_SETS:
        jars = [jar for jar in missing if jar.jar_set == jar_set]
        if jars:
            reason, refused_names = _fetch_jar_set(directory, jars, progress, repository)
            mismatched += refused_names
            reasons += [reason] if reason else []
    if mismatched:
        raise JarMismatchError(
            f"These jars came with another SHA-256 than {LOCK_FILE.name} says and were not kept: "
            f"{', '.join(mismatched)}. Try again; if it stays so, do not trust the repository that served them."
        )
    absent = [jar.file_name for jar in missing if not (directory / jar.file_name).exists()]
    if absent:
        raise JarDownloadError(
            f"{len(absent)} of {len(missing)} jars could not be fetched, {absent[0]} the first of them: "
            f"{reasons[0] if reasons else 'the repository gave no reason'}."
        )


def _fetch_jar_set(
    directory: Path, jars: Sequence[LockedJar], progress: JarProgress, repository: str | None
) -> tuple[str | None, list[str]]:
    with tempfile.TemporaryDirectory(prefix=_INCOMING_PREFIX, dir=directory) as incoming:
        request = JarRequest(tuple(jar.coordinates for jar in jars))
        reason = fetch_jars(request, Path(incoming), progress, repository)
        return reason, _move_verified(Path(incoming), directory, jars)


def _move_verified(incoming: Path, directory: Path, jars: Iterable[LockedJar]) -> list[str]:
    downloaded = [jar for jar in jars if (incoming / jar.file_name).exists()]
    mismatched = []
    for jar in downloaded:
        if _is_intact(incoming / jar.file_name, jar):
            (incoming / jar.file_name).replace(directory / jar.file_name)
        else:
            mismatched.append(jar.file_name)
    return mismatched


@contextmanager
def _lock_jar_directory(directory: Path) -> Iterator[None]:
    """Be the only process that fetches into this folder, and clear what a killed one left."""
    with (directory / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for leftover in directory.glob(f"{_INCOMING_PREFIX}*"):
            shutil.rmtree(leftover)
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Have the jars in a folder, from the command line: `python -m penstock.infra.jars FOLDER`."""
    parser = argparse.ArgumentParser(prog="python -m penstock.infra.jars", description=main.__doc__)
    parser.add_argument("directory", type=Path, help="the jar folder")
    parser.add_argument(
        "--set",
        dest="sets",
        action="append",
        choices=JAR_SETS,
        help="only this set; spark and kafka without it",
    )
    parser.add_argument("--repository", help="the address of a Maven mirror; Ivy's default without it")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    args = parser.parse_args(arguments)
    progress = ignore_progress if args.quiet else _show_progress
    try:
        ensure_jars(args.directory, args.sets or RUNTIME_JAR_SETS, progress, repository=args.repository)
    except PenstockError as error:
        print(error, file=sys.stderr)  # noqa: T201  the answer of a command goes to the terminal
        return 1
    return 0


def _show_progress(done: int, total: int, name: str) -> None:
    end = "\n" if done == total else ""
    print(f"\r\033[K  jar {done} of {total}: {name}", end=end, file=sys.stderr, flush=True)  # noqa: T201  as above


if __name__ == "__main__":
    sys.exit(main())
