"""Loading settings: defaults, then `penstock.toml`, then `PENSTOCK_…` variables."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_settings import EnvSettingsSource
from pydantic_settings.exceptions import SettingsError as UnreadableVariableError

import penstock.platform
from penstock.platform.errors import SettingsError
from penstock.platform.settings.model import Settings
from penstock.platform.settings.naming import (
    SETTINGS_FILE_NAME,
    VARIABLE_PREFIX,
    describe_unknown_variables,
    explain_errors,
    variable_name,
)


class SettingOrigin(StrEnum):
    """The kind of source that a value comes from."""

    DEFAULT = "default"
    FILE = "file"
    VARIABLE = "variable"


@dataclass(frozen=True)
class SettingProvenance:
    """One value and its source: `source` names the file or the variable."""

    name: str
    value: object
    origin: SettingOrigin
    source: str
    description: str


@dataclass(frozen=True)
class LoadedSettings:
    """Settings as they were read, and the source of each value."""

    settings: Settings
    from_file: frozenset[str]
    from_variables: frozenset[str]
    unknown_warnings: tuple[str, ...]
    """One sentence for each `PENSTOCK_…` variable that sets nothing."""

    def list_provenance(self) -> Iterator[SettingProvenance]:
        """Yield every value, in the order of the model."""
        for name, value, description in iter_setting_values(self.settings):
            origin = self.origin_of(name)
            source = {
                SettingOrigin.VARIABLE: variable_name(name),
                SettingOrigin.FILE: SETTINGS_FILE_NAME,
                SettingOrigin.DEFAULT: "",
            }[origin]
            yield SettingProvenance(name, value, origin, source, description)

    def origin_of(self, name: str) -> SettingOrigin:
        """Return the kind of source that a dotted name was set by."""
        if _sets_part_of(name, self.from_variables):
            return SettingOrigin.VARIABLE
        return SettingOrigin.FILE if _sets_part_of(name, self.from_file) else SettingOrigin.DEFAULT


def load_settings() -> LoadedSettings:
    """Read the settings of this process; raise SettingsError with every invalid value."""
    root = find_root()
    return _build_settings(root, _read_settings_file(root / SETTINGS_FILE_NAME))


def check_settings(text: str) -> None:
    """Raise SettingsError if this text is not a valid settings file for this process; used before writing it."""
    root = find_root()
    _build_settings(root, _parse_settings(text, root / SETTINGS_FILE_NAME))


def _build_settings(root: Path, file_values: Mapping[str, object]) -> LoadedSettings:
    variables = _read_variables()
    from_file, from_variables = frozenset(_dotted_paths(file_values)), frozenset(_dotted_paths(variables))
    try:
        settings = Settings.model_validate({**_merge_values(file_values, variables), "root": root})
    except ValidationError as error:
        raise SettingsError(explain_errors(error, lambda name: _is_within(name, from_variables))) from None
    return LoadedSettings(settings, from_file, from_variables, tuple(describe_unknown_variables(os.environ)))


def find_root() -> Path:
    """Return PENSTOCK_ROOT, else the checkout that contains this code, else the current folder."""
    if root_variable := os.environ.get(VARIABLE_PREFIX + "ROOT"):
        return Path(root_variable).expanduser().resolve()
    checkout = Path(penstock.platform.__file__).resolve().parents[3]
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def _read_settings_file(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{path} is not valid TOML ({error}). Fix that line, or move the file away"
        ) from None
    return _parse_settings(text, path)


def _parse_settings(text: str, path: Path) -> dict[str, object]:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f"{path} is not valid TOML ({error}). Fix that line, or move the file away"
        ) from None
    if "root" in values:
        raise SettingsError(
            f"{path} sets root, but root decides where this file is read. Set {VARIABLE_PREFIX}ROOT instead"
        )
    return values


def _read_variables() -> dict[str, object]:
    try:
        return EnvSettingsSource(Settings)()
    except UnreadableVariableError as error:
        raise SettingsError(f"{error} ({error.__cause__}). Write a group of values as JSON") from None


def _merge_values(base: Mapping[str, object], override: Mapping[str, object]) -> dict[str, object]:
    merged = dict(base)
    for name, value in override.items():
        base_value = merged.get(name)
        merged[name] = (
            _merge_values(base_value, value)
            if isinstance(base_value, dict) and isinstance(value, dict)
            else value
        )
    return merged


def _dotted_paths(values: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _dotted_paths(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def _is_within(name: str, paths: frozenset[str]) -> bool:
    return any(path == name or path.startswith(name + ".") for path in paths)


def _sets_part_of(name: str, paths: frozenset[str]) -> bool:
    """Return whether a source sets a value, or a part of it."""
    return name in paths or any(path.startswith(name + ".") for path in paths)


def iter_setting_values(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, object, str]]:
    """Yield every value of a model: its dotted name, the value, its description."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from iter_setting_values(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value, field.description or ""
