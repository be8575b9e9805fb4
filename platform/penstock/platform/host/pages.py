"""The page of what is expected, and the rows that it links to, for a browser on this machine.

Nothing else below the home folder is shown, and nothing to a page of somebody else's: rows may tell of persons.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK

PREFIX = "/quality/"
KINDS = {".html": "text/html; charset=utf-8", ".jsonl": "text/plain; charset=utf-8"}
ALONE = [
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
]
Start = Callable[[str, list[tuple[str, str]]], object]


def folder_of(settings: Settings) -> Path:
    """The folder that is shown."""
    return settings.home / "quality"


def served_at(settings: Settings) -> str:
    """Where a browser finds it, where host and browser are on one machine; empty where nobody can say.

    With a control store of several machines the host's loopback is not that of whoever looks.
    """
    port = settings.host.metrics_port
    here = port and settings.control_url.startswith("sqlite:")
    return f"http://{LOOPBACK}:{port}{PREFIX}" if here else ""


def link(served: str, folder: Path, file: Path) -> str:
    """The address of a file of the folder."""
    return served + quote(file.relative_to(folder).as_posix())


def shown(folder: Path, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    """Answer a request for a file of the folder."""
    file = _asked_for(folder, environ)
    if file is None:
        start("404 Not Found", [("Content-Type", "text/plain")])
        return [b"There is /quality/docs/index.html, once a table was checked, and what it links to\n"]
    start("200 OK", [("Content-Type", KINDS[file.suffix]), *ALONE])
    return [file.read_bytes()]


def _asked_for(folder: Path, environ: dict[str, Any]) -> Path | None:
    """The file that is asked for by its address here; None for any other, wherever a path or a link leads."""
    # Another site may have its name lead here, and would read what the browser is shown.
    ours = environ.get("HTTP_HOST", "").partition(":")[0] in (LOOPBACK, "localhost")
    if not ours or environ["REQUEST_METHOD"] != "GET":
        return None
    file = (folder / environ["PATH_INFO"].removeprefix(PREFIX)).resolve()
    inside = file.is_relative_to(folder.resolve()) and file.suffix in KINDS
    return file if inside and file.is_file() else None
