"""Passwords inside of database URLs, on their way to the stack's programs: by a private file, as libpq reads it.

A program's settings are variables, which `ps` shows and which are stored beside the program. So the programs get
URLs without passwords, and `PGPASSFILE` names a file that only its owner can read.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from penstock.infra.local.private_files import write_private_file
from penstock.platform.settings import Settings

PASSWORD_FILE_VARIABLE = "PGPASSFILE"  # noqa: S105  libpq's name of the variable
_PASSWORD_QUERY = "password"  # noqa: S105  libpq's name of the parameter


def hide_database_passwords(settings: Settings) -> Settings:
    """Return the settings with URLs that have no password."""
    return settings.model_copy(
        update={
            "control_url": _remove_password(settings.control_url),
            "dagster": settings.dagster.model_copy(
                update={"storage_url": _remove_password(settings.dagster.storage_url)}
            ),
        }
    )


def database_password_variables(settings: Settings) -> Mapping[str, str]:
    """Return the variable by which programs find the passwords; none if the URLs have no password."""
    return {PASSWORD_FILE_VARIABLE: str(_password_file(settings))} if _list_entries(settings) else {}


def write_database_passwords(settings: Settings) -> None:
    """Write the file of the passwords, with the entries of the user's own file; remove it if there is none."""
    entries = _list_entries(settings)
    if not entries:
        _password_file(settings).unlink(missing_ok=True)
        return
    own_file = Path(os.environ.get(PASSWORD_FILE_VARIABLE) or Path.home() / ".pgpass")
    own_entries = own_file.read_text("utf-8").splitlines() if own_file.is_file() else []
    write_private_file(_password_file(settings), "".join(f"{line}\n" for line in [*entries, *own_entries]))


def _password_file(settings: Settings) -> Path:
    return settings.home / "run" / "database-passwords"


def _list_entries(settings: Settings) -> list[str]:
    """Return a line of the password file for each URL with a password."""
    urls = map(_parse_url, (settings.control_url, settings.dagster.storage_url))
    return [_format_entry(url, password) for url in urls if url and (password := _read_password(url))]


def _parse_url(url: str | None) -> URL | None:
    try:
        return make_url(url) if url else None
    except ArgumentError:
        return None  # what opens the database reports it


def _read_password(url: URL) -> str:
    parameter = url.query.get(_PASSWORD_QUERY, "")
    return url.password or (parameter if isinstance(parameter, str) else parameter[-1])


def _remove_password(url: str | None) -> str | None:
    parsed = _parse_url(url)
    if parsed is None or not _read_password(parsed):
        return url
    query = {name: value for name, value in parsed.query.items() if name != _PASSWORD_QUERY}
    without = URL.create(
        parsed.drivername, parsed.username, None, parsed.host, parsed.port, parsed.database, query
    )
    return without.render_as_string(hide_password=False)


def _format_entry(url: URL, password: str) -> str:
    parts = (url.host or "*", str(url.port or "*"), url.database or "*", url.username or "*", password)
    return ":".join(part if part == "*" else part.replace("\\", r"\\").replace(":", r"\:") for part in parts)
