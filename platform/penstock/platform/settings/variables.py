"""Settings as variables: how a program that the stack runs is told what was decided at its start."""

import json
from collections.abc import Iterable
from pathlib import Path

from penstock.platform.settings.load import leaves
from penstock.platform.settings.model import Settings
from penstock.platform.settings.names import variable

PLACES = (
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

FOR_HOST = (*PLACES, "kafka", "spark", "host", "alerts")


def as_variables(settings: Settings, parts: Iterable[str]) -> dict[str, str]:
    """The settings of some parts of the model, defaults too, as variables.

    Told so, a program keeps to one set of settings however often it is restarted, whatever becomes of
    the file meanwhile; and a changed setting changes only the programs that it is for.
    """
    wanted = set(parts)
    return {
        variable(name): as_text(value)
        for name, value, _description in leaves(settings)
        if name.split(".")[0] in wanted and value is not None
    }


def as_text(value: object) -> str:
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
