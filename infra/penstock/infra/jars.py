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

from penstock.infra.errors import InfraError, JarDownloadError, JarLockError, JarMismatchError
from penstock.infra.ivy import Coordinates, Progress, Wanted, fetch, silent

SETS = ("spark", "kafka", "tools", "store")
RUNNING = ("spark", "kafka")
"""What the platform runs from; `tools` adds Kafka's own command-line tools to the broker's jars,
`store` lets Spark read an object store."""
LOCK = Path(__file__).with_name("jars.lock")
NEEDED_BYTES = 300 * 1024 * 1024
"""What a fetch of every set may take while it runs; the jars themselves are about 100 MB."""

_INCOMING = ".incoming-"


@dataclass(frozen=True)
class LockedJar:
    """A line of the lock: what the jar is, what its bytes must be, and who needs it."""

    sha256: str
    coordinates: Coordinates
    set: str

    @property
    def file_name(self) -> str:
        """The name that the jar has in the jar folder."""
        return self.coordinates.file_name


def read_lock(lock: Path = LOCK) -> list[LockedJar]:
    """Read the lock. Raises JarLockError that names the line which cannot be read."""
    try:
        lines = lock.read_text("utf-8").splitlines()
    except OSError as error:
        raise JarLockError(f"The lock of the jars, {lock}, cannot be read: {error.strerror}.") from error
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line and not line.startswith("#"))
    return [_locked_jar(lock, number, line) for number, line in numbered]


def ensure_jars(
    directory: Path,
    sets: Sequence[str] = RUNNING,
    progress: Progress = silent,
    lock: Path = LOCK,
    repository: str | None = None,
) -> list[Path]:
    """Have every jar of these sets in the folder, each with the SHA-256 of the lock.

    Fetches only what is missing or wrong, and nothing when all is right (that costs one hash of each
    jar). Raises JarDownloadError or JarMismatchError; the jars that came right before that stay, so a
    second call goes on from there. `repository` is the address of a mirror; Ivy's default without it.
    """
    wanted = [jar for jar in read_lock(lock) if jar.set in sets]
    if not _wrong(directory, wanted):
        return _paths(directory, wanted)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _alone(directory):
            missing = _wrong(directory, wanted)
            if missing:
                _check_space(directory)
                _fetch_into(directory, missing, progress, repository)
    except OSError as error:
        raise JarDownloadError(
            f"The jars cannot be put into {directory}: {error.strerror}. Make the folder writable, with "
            f"{NEEDED_BYTES // 1024**2} MB free, and try again."
        ) from error
    return _paths(directory, wanted)


def spark_jars(directory: Path, *sets: str) -> list[Path]:
    """Return the jars that Spark takes beside those of its wheel; see ensure_jars for having them."""
    return _paths(directory, [jar for jar in read_lock() if jar.set in (sets or ("spark",))])


def kafka_jars(directory: Path) -> list[Path]:
    """Return the jars that the local broker runs from; see ensure_jars for having them."""
    return _paths(directory, [jar for jar in read_lock() if jar.set == "kafka"])


def missing_jars(directory: Path, sets: Sequence[str] = RUNNING, lock: Path = LOCK) -> list[str]:
    """Return the names of the jars that are absent or whose bytes are not the lock's; empty is good."""
    return [jar.file_name for jar in _wrong(directory, [jar for jar in read_lock(lock) if jar.set in sets])]


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _locked_jar(lock: Path, number: int, line: str) -> LockedJar:
    words = line.split()
    names = words[1].split(":") if len(words) == 3 else []
    if len(names) != 3 or len(words[0]) != 64 or words[2] not in SETS:
        raise JarLockError(
            f"Line {number} of {lock} is not `sha256 group:artifact:version set`: {line!r}. "
            "Make the lock again with `make lock`."
        )
    return LockedJar(words[0], Coordinates(*names), words[2])


def _wrong(directory: Path, wanted: Iterable[LockedJar]) -> list[LockedJar]:
    return [jar for jar in wanted if not _is_right(directory / jar.file_name, jar)]


def _is_right(path: Path, jar: LockedJar) -> bool:
    try:
        return sha256_of(path) == jar.sha256
    except (FileNotFoundError, NotADirectoryError):
        return False


def _paths(directory: Path, jars: Iterable[LockedJar]) -> list[Path]:
    return [directory / jar.file_name for jar in jars]


def _check_space(directory: Path) -> None:
    free = shutil.disk_usage(directory).free
    if free < NEEDED_BYTES:
        raise JarDownloadError(
            f"Fetching the jars needs {NEEDED_BYTES // 1024**2} MB and {directory} has "
            f"{free // 1024**2} MB free. Free some space and try again."
        )


def _fetch_into(
    directory: Path, missing: Sequence[LockedJar], progress: Progress, repository: str | None
) -> None:
    wrong, reasons = [], []
    # One fetch a set: two sets may hold one artifact in two versions, of which Ivy would keep one.
    for name in SETS:
        jars = [jar for jar in missing if jar.set == name]
        if jars:
            reason, refused = _fetch_set(directory, jars, progress, repository)
            wrong += refused
            reasons += [reason] if reason else []
    if wrong:
        raise JarMismatchError(
            f"These jars came with another SHA-256 than {LOCK.name} says and were not kept: "
            f"{', '.join(wrong)}. Try again; if it stays so, do not trust the repository that served them."
        )
    absent = [jar.file_name for jar in missing if not (directory / jar.file_name).exists()]
    if absent:
        raise JarDownloadError(
            f"{len(absent)} of {len(missing)} jars could not be fetched, {absent[0]} the first of them: "
            f"{reasons[0] if reasons else 'the repository gave no reason'}."
        )


def _fetch_set(
    directory: Path, jars: Sequence[LockedJar], progress: Progress, repository: str | None
) -> tuple[str | None, list[str]]:
    with tempfile.TemporaryDirectory(prefix=_INCOMING, dir=directory) as incoming:
        wanted = Wanted(tuple(jar.coordinates for jar in jars))
        reason = fetch(wanted, Path(incoming), progress, repository)
        return reason, _move_in(Path(incoming), directory, jars)


def _move_in(incoming: Path, directory: Path, jars: Iterable[LockedJar]) -> list[str]:
    arrived = [jar for jar in jars if (incoming / jar.file_name).exists()]
    wrong = []
    for jar in arrived:
        if _is_right(incoming / jar.file_name, jar):
            (incoming / jar.file_name).replace(directory / jar.file_name)
        else:
            wrong.append(jar.file_name)
    return wrong


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Be the only process that fetches into this folder, and clear what a killed one left."""
    with (directory / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for left in directory.glob(f"{_INCOMING}*"):
            shutil.rmtree(left)
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Have the jars in a folder, from the command line: `python -m penstock.infra.jars FOLDER`."""
    parser = argparse.ArgumentParser(prog="python -m penstock.infra.jars", description=main.__doc__)
    parser.add_argument("directory", type=Path, help="the jar folder")
    parser.add_argument(
        "--set", dest="sets", action="append", choices=SETS, help="only this set; spark and kafka without it"
    )
    parser.add_argument("--repository", help="the address of a Maven mirror; Ivy's default without it")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    asked = parser.parse_args(arguments)
    progress = silent if asked.quiet else _show
    try:
        ensure_jars(asked.directory, asked.sets or RUNNING, progress, repository=asked.repository)
    except InfraError as error:
        print(error, file=sys.stderr)  # noqa: T201  the answer of a command goes to the terminal
        return 1
    return 0


def _show(done: int, total: int, name: str) -> None:
    end = "\n" if done == total else ""
    print(f"\r\033[K  jar {done} of {total}: {name}", end=end, file=sys.stderr, flush=True)  # noqa: T201  as above


if __name__ == "__main__":
    sys.exit(main())
