"""Settings as variables: how a program that the stack runs is told what was decided at its start."""

import json
from collections.abc import Iterable
from pathlib import Path

from penstock.platform.settings.loader import iter_setting_values
from penstock.platform.settings.model import Settings
from penstock.platform.settings.naming import variable_name

LOCATION_SECTIONS = (
    "root",
    "home",
    "jars",
    "warehouse",
    "warehouse_store",
    "control_url",
    "control_secret",
    "streams",
)
"""What every program is told: where things are."""

HOST_SECTIONS = (*LOCATION_SECTIONS, "kafka", "spark", "host", "alerts")


def settings_to_variables(settings: Settings, sections: Iterable[str]) -> dict[str, str]:
    """The settings of some parts of the model, defaults too, as variables.

    Told so, a program keeps to one set of settings however often it is restarted, whatever becomes of
    the file meanwhile; and a changed setting changes only the programs that it is for.
    """
    wanted_sections = set(sections)
    return {
        variable_name(name): format_setting(value)
        for name, value, _description in iter_setting_values(settings)
        if name.split(".")[0] in wanted_sections and value is not None
    }


def format_setting(value: object) -> str:
    """A value as it is written in a variable; nothing for None."""
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
            return json.dumps({key: part.model_dump(exclude_none=True) for key, part in value.items()})
        case _:
            raise TypeError(f"a setting of type {type(value).__name__} has no form as a variable")
