"""The data quality pages and the rows that they link to, for a browser on this machine.

Nothing else below the home folder is served. The server refuses pages of other sites: rows may contain personal
data.
"""

from pathlib import Path
from urllib.parse import quote

from penstock.core.http.addresses import is_loopback
from penstock.core.http.asgi import TEXT
from penstock.platform.settings import Settings

QUALITY_URL_PREFIX = "/quality/"
QUALITY_PAGE_URL = f"{QUALITY_URL_PREFIX}docs/index.html"
"""The page with the results of all expectations."""
CONTENT_TYPES = {".html": b"text/html; charset=utf-8", ".jsonl": b"text/plain; charset=utf-8"}
ISOLATION_HEADERS = [
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


def quality_folder(settings: Settings) -> Path:
    """Return the folder that is served."""
    return settings.home / "quality"


def quality_url(settings: Settings) -> str:
    """Return the URL of the pages if host and browser are on one machine, else an empty text.

    With a control store for several machines, the host's loopback address is not that of the browser.
    """
    port = settings.host.metrics_port
    address = settings.host.local_metrics_address
    # At other addresses the server asks for a token, which a browser does not send.
    is_local = port and settings.control_url.startswith("sqlite:") and is_loopback(address)
    scheme = "https" if settings.host.metrics_certificate else "http"
    return f"{scheme}://{address}:{port}{QUALITY_URL_PREFIX}" if is_local else ""


def file_url(base_url: str, folder: Path, file: Path) -> str:
    """Return the URL of a file in the folder."""
    return base_url + quote(file.relative_to(folder).as_posix())


def serve_file(folder: Path, path: str) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    """Return status, body and headers of the response for a file in the folder."""
    if path == QUALITY_URL_PREFIX:
        return 302, b"", [(b"location", QUALITY_PAGE_URL.encode())]
    file = _find_requested_file(folder, path)
    if file is None:
        body = f"Not found. {QUALITY_PAGE_URL} exists after the first check of a table: `penstock check`.\n"
        return 404, body.encode(), TEXT
    return 200, file.read_bytes(), [(b"content-type", CONTENT_TYPES[file.suffix]), *ISOLATION_HEADERS]


def _find_requested_file(folder: Path, path: str) -> Path | None:
    """Return the requested file, or None if the path or a link leads out of the folder, or to another type."""
    file = (folder / path.removeprefix(QUALITY_URL_PREFIX)).resolve()
    is_servable = file.is_relative_to(folder.resolve()) and file.suffix in CONTENT_TYPES
    return file if is_servable and file.is_file() else None
