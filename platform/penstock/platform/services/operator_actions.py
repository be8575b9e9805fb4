"""The journal of operators' actions: who did what, when and from where, in a file of the home that only grows.

One line is one action. It is appended in one write, so that several processes may record at the same time.
"""

import getpass
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.core.clock import now_ms
from penstock.core.file_sync import sync_folder

JOURNAL_NAME = "operator-actions.jsonl"

ActionOrigin = Literal["command line", "dagster", "console"]


class OperatorAction(msgspec.Struct, frozen=True):
    """One action: `action` is the command without its arguments, `target` what it was applied to."""

    at_ms: int
    action: str
    target: str
    user: str
    host: str
    origin: ActionOrigin = "command line"
    details: dict[str, Any] = {}


def record_action(
    home: Path,
    action: str,
    target: str,
    details: Mapping[str, Any] | None = None,
    origin: ActionOrigin = "command line",
    user: str = "",
) -> OperatorAction:
    """Append an action to the journal, and return it. The user is that of this process, unless one is given."""
    entry = OperatorAction(
        now_ms(), action, target, user or _find_user(), socket.gethostname(), origin, dict(details or {})
    )
    path = home / JOURNAL_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, msgspec.json.encode(entry) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)
    return entry


def read_actions(home: Path) -> Iterator[OperatorAction]:
    """Yield all actions, oldest first. A line that a full disk cut off is skipped."""
    path = home / JOURNAL_NAME
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            yield msgspec.json.decode(line, type=OperatorAction)
        except msgspec.DecodeError:
            continue


def _find_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have a user without a name
        return f"uid {os.getuid()}"
