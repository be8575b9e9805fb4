"""The word that a submitted host is still wanted: a file that it looks for, and that its launcher takes away.

A signal would have spark-submit end its driver in the midst of a batch, and none reaches a driver on another
machine. Launcher and driver share the home folder wherever they are, for streams have their state there.
"""

import fcntl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

LOOK_SECONDS = 0.25


@contextmanager
def given(folder: Path) -> Iterator[Path]:
    """Give the word for one host, as long as the context lasts or until the file is removed.

    It is locked meanwhile: a word whose launcher was killed is taken back by the next one, and its host ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("host-*"):
        _take_back(left)
    name = uuid4().hex[:12]
    word, unlocked = folder / f"host-{name}", folder / f"new-{name}"
    with unlocked.open("x") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        unlocked.rename(word)
        try:
            yield word
        finally:
            word.unlink(missing_ok=True)


def when_taken_back(word: Path, end: Callable[[], None]) -> None:
    """Call `end`, once and from another thread, as soon as the word is gone."""

    def look() -> None:
        never = threading.Event()
        while word.exists():
            never.wait(LOOK_SECONDS)
        end()

    threading.Thread(target=look, name="word of the launcher", daemon=True).start()


def _take_back(word: Path) -> None:
    """Remove a word that nobody holds any more."""
    with suppress(FileNotFoundError, BlockingIOError), word.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        word.unlink()
