"""The page of what is expected, and the rows that it links to, for a browser on this machine.

Nothing else below the home folder is shown, and nothing to a page of somebody else's: rows may tell of persons.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK

QUALITY_URL_PREFIX = "/quality/"
CONTENT_TYPES = {".html": "text/html; charset=utf-8", ".jsonl": "text/plain; charset=utf-8"}
ISOLATION_HEADERS = [
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
]
StartResponse = Callable[[str, list[tuple[str, str]]], object]


def quality_folder(settings: Settings) -> Path:
    """The folder that is shown."""
    return settings.home / "quality"


def quality_url(settings: Settings) -> str:
    """Where a browser finds it, where host and browser are on one machine; empty where nobody can say.

    With a control store of several machines the host's loopback is not that of whoever looks.
    """
    port = settings.host.metrics_port
    is_local = port and settings.control_url.startswith("sqlite:")
    return f"http://{LOOPBACK}:{port}{QUALITY_URL_PREFIX}" if is_local else ""


def file_url(base_url: str, folder: Path, file: Path) -> str:
    """The address of a file of the folder."""
    return base_url + quote(file.relative_to(folder).as_posix())


def serve_file(folder: Path, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """Answer a request for a file of the folder."""
    file = _find_requested_file(folder, environ)
    if file is None:
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"There is /quality/docs/index.html, once a table was checked, and what it links to\n"]
    start_response("200 OK", [("Content-Type", CONTENT_TYPES[file.suffix]), *ISOLATION_HEADERS])
    return [file.read_bytes()]


def _find_requested_file(folder: Path, environ: dict[str, Any]) -> Path | None:
    """The file that is asked for by its address here; None for any other, wherever a path or a link leads."""
    # Another site may have its name lead here, and would read what the browser is shown.
    is_own_host = environ.get("HTTP_HOST", "").partition(":")[0] in (LOOPBACK, "localhost")
    if not is_own_host or environ["REQUEST_METHOD"] != "GET":
        return None
    file = (folder / environ["PATH_INFO"].removeprefix(QUALITY_URL_PREFIX)).resolve()
    is_servable = file.is_relative_to(folder.resolve()) and file.suffix in CONTENT_TYPES
    return file if is_servable and file.is_file() else None
