"""Settings as environment variables: how the stack passes its settings to the programs that it starts."""

import json
from collections.abc import Iterable
from pathlib import Path

from penstock.platform.settings.loader import iter_setting_values
from penstock.platform.settings.model import Settings
from penstock.platform.settings.naming import variable_name

LOCATION_SECTIONS = (
    "root",
    "home",
    "file_access",
    "jars",
    "warehouse",
    "warehouse_store",
    "control_url",
    "control_secret",
    "streams",
)
"""The sections that every program receives: where things are."""

HOST_SECTIONS = (*LOCATION_SECTIONS, "kafka", "spark", "host", "alerts")
CONSOLE_SECTIONS = (*HOST_SECTIONS, "console", "dagster", "max_future_skew")


def settings_to_variables(settings: Settings, sections: Iterable[str]) -> dict[str, str]:
    """Return the settings of some sections as variables, including defaults.

    A program keeps these values however often it restarts, even if the settings file changes meanwhile. A changed
    setting changes only the variables of the programs that use it.
    """
    wanted_sections = set(sections)
    return {
        variable_name(name): format_setting(value)
        for name, value, _description in iter_setting_values(settings)
        if name.split(".")[0] in wanted_sections and value is not None
    }


def format_setting(value: object) -> str:
    """Return a value in the form that a variable takes; an empty text for None."""
    match value:
        case None:
            return ""
        case tuple():
            return ",".join(str(item) for item in value)
        case bool():
            return str(value).lower()
        case Path() | str() | int() | float():
            return str(value)
        case dict():
            return json.dumps(
                {key: part.model_dump(mode="json", exclude_none=True) for key, part in value.items()}
            )
        case _:
            raise TypeError(f"a setting of type {type(value).__name__} cannot be written as a variable")
