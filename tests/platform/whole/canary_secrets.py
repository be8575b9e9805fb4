"""Secrets of a whole stack, and every place in which they must not be."""

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
from tests.infra.environments.secret_search import find_files_with_values
from tests.platform.whole.scratch_stack import ScratchStack

CANARY = "canary-5e4c-0123456789"
COMMANDS = (("status",), ("status", "--settings"), ("doctor",), ("ports",), ("logs", "-n", "1000"))


def write_canaries(folder: Path) -> Mapping[str, str]:
    """Write secrets into files, and return the variables that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "webhook").write_text(f"http://127.0.0.1:1/services/{CANARY}")
    (folder / "token").write_text(CANARY)
    for file in folder.iterdir():
        file.chmod(0o600)
    return {
        "PENSTOCK_ALERTS__WEBHOOK": f"file:{folder / 'webhook'}",
        "PENSTOCK_HOST__METRICS_TOKEN": str(folder / "token"),
        "PENSTOCK_LINEAGE__KEY": f"file:{folder / 'token'}",
    }


def find_shown_secrets(stack: ScratchStack) -> list[str]:
    """List the commands, files of the home and processes that show a secret."""
    shown = [" ".join(command) for command in COMMANDS if CANARY in str(stack.run(*command))]
    files = [path for path in stack.home.rglob("*") if path.is_file() and not path.is_symlink()]
    shown += map(str, find_files_with_values(files, [CANARY.encode()]))
    return [*shown, *_find_processes(stack)]


def _find_processes(stack: ScratchStack) -> Iterator[str]:
    for pid in stack.pids().values():
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            try:
                visible = f"{process.cmdline()} {process.environ()}"
            except psutil.Error:
                continue  # it has ended
            if CANARY in visible:
                yield f"{process.pid}: {process.name()}"


def find_open_files(folder: Path) -> list[str]:
    """List the files and folders that other users may read or write, with their modes.

    The `dagster` command writes files of runs with the umask of whoever calls it. Of these, the folders count.
    """
    runs = folder / "dagster" / "history" / "runs"
    modes = {path: _read_mode(path) for path in _walk(folder) if path.parent != runs}
    return [f"{stat.S_IMODE(mode):o} {path}" for path, mode in modes.items() if mode & 0o077]


def _read_mode(path: Path) -> int:
    """Return the mode of a file or folder; 0 for a link, and for a file that was removed meanwhile."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return 0
    return 0 if stat.S_ISLNK(mode) else mode


def _walk(folder: Path) -> list[Path]:
    found = [folder, *folder.rglob("*")]
    return [path for path in found if path.exists()]
