"""Setting values in `penstock.toml` without touching what a person wrote there.

Lines that an environment sets carry a mark at their end; they are replaced when another one is used, and
taken out again when none is. A value that a person has set is never overwritten.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping

from penstock.infra.environments.errors import SettingsFileError

MARK = "# set by penstock env use"


def without_marked(text: str) -> str:
    """The text less every line that an environment has set; a table that a person added to stays."""
    lines = text.splitlines(keepends=True)
    return "".join(line for place, line in enumerate(lines) if MARK not in line or _is_used(lines, place))


def _is_used(lines: list[str], place: int) -> bool:
    """Whether the line begins a table that holds something of a person's."""
    if not lines[place].startswith("["):
        return False
    for line in lines[place + 1 :]:
        if line.lstrip().startswith("["):
            return False
        if MARK not in line and line.partition("#")[0].strip():
            return True
    return False


def with_settings(text: str, settings: Mapping[str, str], environment: str) -> str:
    """The text with these settings, by dotted names, in place of what another environment had set."""
    lines = without_marked(text).splitlines()
    _refuse_a_persons_own(lines, settings)
    for name, value in sorted(settings.items()):
        table, _, key = name.rpartition(".")
        line = f"{key} = {json.dumps(value)}  {MARK} {environment}"
        lines.insert(_place(lines, table, environment), line)
    return _checked("\n".join(lines) + "\n")


def _place(lines: list[str], table: str, environment: str) -> int:
    """Where a line of that table belongs; the table is begun when it is not there."""
    if not table:
        return 0
    for index, line in enumerate(lines):
        if line.partition("#")[0].strip() == f"[{table}]":
            return index + 1
    lines.append(f"[{table}]  {MARK} {environment}")
    return len(lines)


def _refuse_a_persons_own(lines: list[str], settings: Mapping[str, str]) -> None:
    own = _dotted(tomllib.loads(_checked("\n".join(lines))))
    for name in settings.keys() & own:
        raise SettingsFileError(
            f"penstock.toml sets {name} itself, and the environment would set it, too. "
            "Take that line out to use the environment's, or do not use it."
        )


def _dotted(values: Mapping[str, object], prefix: str = "") -> set[str]:
    names: set[str] = set()
    for name, value in values.items():
        inner = value if isinstance(value, Mapping) else None
        names |= _dotted(inner, f"{prefix}{name}.") if inner is not None else {prefix + name}
    return names


def _checked(text: str) -> str:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsFileError(
            f"penstock.toml is not TOML ({error}). Mend that line and try again."
        ) from error
    return text
