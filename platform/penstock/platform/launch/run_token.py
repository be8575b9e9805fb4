"""The run token of a submitted host: a file that the host polls, and that its launcher removes to stop it.

On a signal, spark-submit would end its driver in the middle of a batch, and no signal reaches a driver on another
machine. Launcher and driver share the home folder wherever they run, because streams keep their state there.
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
    """Hold the token of one host until the context ends or the file is removed; yields the file.

    The file stays locked while it is held. A token whose launcher was killed is unlocked: the next launcher removes
    it, and its host stops.
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
    """Call `on_revoked` once, from another thread, when the token file is gone."""

    def poll_token() -> None:
        never = threading.Event()
        while token_file.exists():
            never.wait(POLL_INTERVAL_S)
        on_revoked()

    threading.Thread(target=poll_token, name="run token", daemon=True).start()


def _revoke_stale_token(token_file: Path) -> None:
    """Remove a token whose launcher no longer runs."""
    with suppress(FileNotFoundError, BlockingIOError), token_file.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        token_file.unlink()
