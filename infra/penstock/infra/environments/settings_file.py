"""Setting values in `penstock.toml` without touching what a person wrote there.

Lines that an environment sets carry a mark at their end; they are replaced when another one is used, and
taken out again when none is. A value that a person has set is never overwritten.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping

from penstock.infra.environments.errors import SettingsFileError

LINE_MARK = "# set by penstock env use"


def remove_marked_lines(text: str) -> str:
    """The text less every line that an environment has set; a table that a person added to stays."""
    lines = text.splitlines(keepends=True)
    return "".join(
        line for index, line in enumerate(lines) if LINE_MARK not in line or _has_user_lines(lines, index)
    )


def _has_user_lines(lines: list[str], index: int) -> bool:
    """Whether the line begins a table that holds something of a person's."""
    if not lines[index].startswith("["):
        return False
    for line in lines[index + 1 :]:
        if line.lstrip().startswith("["):
            return False
        if LINE_MARK not in line and line.partition("#")[0].strip():
            return True
    return False


def apply_settings(text: str, settings: Mapping[str, str], environment: str) -> str:
    """The text with these settings, by dotted names, in place of what another environment had set."""
    lines = remove_marked_lines(text).splitlines()
    _refuse_user_settings(lines, settings)
    for name, value in sorted(settings.items()):
        table, _, key = name.rpartition(".")
        line = f"{key} = {json.dumps(value)}  {LINE_MARK} {environment}"
        lines.insert(_find_insert_index(lines, table, environment), line)
    return _validate_toml("\n".join(lines) + "\n")


def _find_insert_index(lines: list[str], table: str, environment: str) -> int:
    """Where a line of that table belongs; the table is begun when it is not there."""
    if not table:
        return 0
    for index, line in enumerate(lines):
        if line.partition("#")[0].strip() == f"[{table}]":
            return index + 1
    lines.append(f"[{table}]  {LINE_MARK} {environment}")
    return len(lines)


def _refuse_user_settings(lines: list[str], settings: Mapping[str, str]) -> None:
    user_names = _dotted_names(tomllib.loads(_validate_toml("\n".join(lines))))
    for name in settings.keys() & user_names:
        raise SettingsFileError(
            f"penstock.toml sets {name} itself, and the environment would set it, too. "
            "Take that line out to use the environment's, or do not use it."
        )


def _dotted_names(values: Mapping[str, object], prefix: str = "") -> set[str]:
    names: set[str] = set()
    for name, value in values.items():
        inner = value if isinstance(value, Mapping) else None
        names |= _dotted_names(inner, f"{prefix}{name}.") if inner is not None else {prefix + name}
    return names


def _validate_toml(text: str) -> str:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsFileError(
            f"penstock.toml is not TOML ({error}). Mend that line and try again."
        ) from error
    return text
