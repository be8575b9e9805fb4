"""Dotted names of settings, their variables, and messages for unknown names and invalid values."""

from collections.abc import Callable, Iterable, Iterator

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from penstock.core.names import find_nearest_name
from penstock.core.secret import show_reference
from penstock.core.secret_reference import SecretReferenceMark, mask_passwords
from penstock.infra.readiness import READY_FILE_VARIABLE
from penstock.platform.settings.model import Settings

VARIABLE_PREFIX = "PENSTOCK_"
SETTINGS_FILE_NAME = "penstock.toml"


def variable_name(name: str) -> str:
    """Return the variable that sets a dotted name."""
    return VARIABLE_PREFIX + name.replace(".", "__").upper()


def iter_setting_names(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[str]:
    """Yield every dotted name that can be set."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from iter_setting_names(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def iter_secret_settings(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[str]:
    """Yield the dotted name of every setting that names a secret."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from iter_secret_settings(field.annotation, f"{prefix}{name}.")
        elif any(isinstance(mark, SecretReferenceMark) for mark in field.metadata):
            yield prefix + name


def show_setting(name: str, value: object) -> object:
    """Return the value of a setting for people: without passwords, and without what may be a secret."""
    if not isinstance(value, str):
        return value
    return show_reference(value) if name in set(iter_secret_settings()) else mask_passwords(value)


def explain_errors(error: ValidationError, is_variable: Callable[[str], bool]) -> str:
    """Return a line for each invalid value: its source, the value, and what is allowed."""
    return "\n".join(_explain_error(detail, is_variable) for detail in error.errors())


def describe_unknown_variables(environment: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each variable that looks like a setting and sets nothing; clusters add some."""
    known_variables = {variable_name(name) for name in iter_setting_names()} | {
        variable_name(name) for name in Settings.model_fields
    }
    known_variables |= {READY_FILE_VARIABLE}  # set by the parent process, not by a person
    for name in sorted(environment):
        if name.startswith(VARIABLE_PREFIX) and name.upper() not in known_variables:
            dotted_name = name.removeprefix(VARIABLE_PREFIX).lower().replace("__", ".")
            yield f"{name} sets nothing{_suggest_name(dotted_name, is_variable=True)}"


def _explain_error(detail: ErrorDetails, is_variable: Callable[[str], bool]) -> str:
    name = ".".join(str(part) for part in detail["loc"] if isinstance(part, str))
    is_value = isinstance(detail["input"], str | int | float)
    if detail["type"] == "value_error" and not is_value:
        # A validator of several settings raised it, and its text names them.
        return detail["msg"].removeprefix("Value error, ")
    source = variable_name(name) if is_variable(name) else f"{name} in {SETTINGS_FILE_NAME}"
    shown_value = show_setting(name, detail["input"])
    if detail["type"] == "value_error":
        return f"{source} is {shown_value!r}: {detail['msg'].removeprefix('Value error, ')}"
    if detail["type"] == "extra_forbidden":
        suggestion = _suggest_name(name, is_variable=is_variable(name))
        return f"{source} is not a setting{suggestion or '.'} `penstock status --settings` lists all settings"
    return f"{source} is {shown_value!r}: {detail['msg'].lower()}"


def _suggest_name(name: str, *, is_variable: bool) -> str:
    """Name the nearest setting, as a variable or as in the settings file, where a section may be meant."""
    known_names = list(iter_setting_names())
    if not is_variable:
        known_names += sorted({known.rpartition(".")[0] for known in known_names} - {""})
    nearest = find_nearest_name(name, known_names)
    return "" if nearest is None else f". Did you mean {variable_name(nearest) if is_variable else nearest}?"
