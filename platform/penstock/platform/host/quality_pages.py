"""The data quality pages and the rows that they link to, for a browser on this machine.

Nothing else below the home folder is served, and other sites cannot read the pages: rows may contain personal data.
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
    """Return the folder that is served."""
    return settings.home / "quality"


def quality_url(settings: Settings) -> str:
    """Return the URL of the pages if host and browser are on one machine, else an empty text.

    With a control store for several machines, the host's loopback address is not that of the browser.
    """
    port = settings.host.metrics_port
    is_local = port and settings.control_url.startswith("sqlite:")
    return f"http://{LOOPBACK}:{port}{QUALITY_URL_PREFIX}" if is_local else ""


def file_url(base_url: str, folder: Path, file: Path) -> str:
    """Return the URL of a file in the folder."""
    return base_url + quote(file.relative_to(folder).as_posix())


def serve_file(folder: Path, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """Answer a request for a file in the folder."""
    file = _find_requested_file(folder, environ)
    if file is None:
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"Not found. /quality/docs/index.html exists after the first check of a table.\n"]
    start_response("200 OK", [("Content-Type", CONTENT_TYPES[file.suffix]), *ISOLATION_HEADERS])
    return [file.read_bytes()]


def _find_requested_file(folder: Path, environ: dict[str, Any]) -> Path | None:
    """Return the requested file, or None if the path or a link leads out of the folder, or to another type."""
    # Another site could point its name at this address (DNS rebinding) and read the answer.
    is_own_host = environ.get("HTTP_HOST", "").partition(":")[0] in (LOOPBACK, "localhost")
    if not is_own_host or environ["REQUEST_METHOD"] != "GET":
        return None
    file = (folder / environ["PATH_INFO"].removeprefix(QUALITY_URL_PREFIX)).resolve()
    is_servable = file.is_relative_to(folder.resolve()) and file.suffix in CONTENT_TYPES
    return file if is_servable and file.is_file() else None
