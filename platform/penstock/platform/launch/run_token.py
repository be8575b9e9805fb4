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

POLL_INTERVAL_S = 0.25


@contextmanager
def hold_run_token(folder: Path) -> Iterator[Path]:
    """Give the word for one host, as long as the context lasts or until the file is removed.

    It is locked meanwhile: a word whose launcher was killed is taken back by the next one, and its host ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for stale_token in folder.glob("host-*"):
        _revoke_stale_token(stale_token)
    name = uuid4().hex[:12]
    token_file, unlocked_file = folder / f"host-{name}", folder / f"new-{name}"
    with unlocked_file.open("x") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        unlocked_file.rename(token_file)
        try:
            yield token_file
        finally:
            token_file.unlink(missing_ok=True)


def watch_run_token(token_file: Path, on_revoked: Callable[[], None]) -> None:
    """Call `end`, once and from another thread, as soon as the word is gone."""

    def poll_token() -> None:
        never = threading.Event()
        while token_file.exists():
            never.wait(POLL_INTERVAL_S)
        on_revoked()

    threading.Thread(target=poll_token, name="word of the launcher", daemon=True).start()


def _revoke_stale_token(token_file: Path) -> None:
    """Remove a word that nobody holds any more."""
    with suppress(FileNotFoundError, BlockingIOError), token_file.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        token_file.unlink()
