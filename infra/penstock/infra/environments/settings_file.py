"""An environment's settings in `penstock.toml`; values and comments that a user wrote stay as they are.

A line that an environment sets ends with a marker comment. Using another environment replaces these lines, and
using none removes them. A value that the user has set is never overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit import TOMLDocument
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AbstractTable, Item

from penstock.infra.environments.errors import SettingsFileError

MARKER = "set by penstock env use"


def apply_settings(text: str, settings: Mapping[str, str], environment: str) -> str:
    """Return the text with these settings, by dotted names, instead of those of an earlier environment.

    Raises SettingsFileError if the text is not TOML, or if the user has set one of the settings.
    """
    document = _parse(remove_settings(text))
    user_names = _dotted_names(document.unwrap())
    for name, value in sorted(settings.items()):
        if name in user_names:
            raise SettingsFileError(
                f"penstock.toml sets {name}, and the environment {environment} sets it too; remove your line "
                "to use the environment's value"
            )
        *table_names, key = name.split(".")
        table: Any = document
        for table_name in table_names:
            if table_name not in table:
                table.add(table_name, tomlkit.table().comment(f"{MARKER} {environment}"))
            table = table[table_name]
        table.add(key, tomlkit.item(value).comment(f"{MARKER} {environment}"))
    return tomlkit.dumps(document)


def remove_settings(text: str) -> str:
    """Return the text without the settings of an environment. A table that the user added values to stays."""
    document = _parse(text)
    _remove_marked_items(document)
    remaining_text = tomlkit.dumps(document)
    # A removed table leaves the empty line that separated it.
    return remaining_text if remaining_text == text else remaining_text.rstrip("\n") + "\n" * bool(document)


def _remove_marked_items(table: TOMLDocument | AbstractTable) -> None:
    for key, item in list(table.items()):
        if isinstance(item, AbstractTable):
            _remove_marked_items(item)
            if _is_marked(item) and not item:
                table.remove(key)
        elif _is_marked(item):
            table.remove(key)


def _is_marked(item: Any) -> bool:
    return isinstance(item, Item) and MARKER in item.trivia.comment


def _dotted_names(values: Mapping[str, Any], prefix: str = "") -> set[str]:
    names: set[str] = set()
    for name, value in values.items():
        names |= _dotted_names(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name}
    return names


def _parse(text: str) -> TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise SettingsFileError(
            f"penstock.toml is not TOML ({error}); fix that line, then try again"
        ) from error
