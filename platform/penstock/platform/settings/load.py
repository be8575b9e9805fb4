"""Reading the settings: defaults, then `penstock.toml`, then `PENSTOCK_…` variables."""

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
from penstock.platform.settings.names import FILE, PREFIX, explain_errors, unknown_variables, variable


class Origin(StrEnum):
    """Where a value came from."""

    DEFAULT = "default"
    FILE = "file"
    VARIABLE = "variable"


@dataclass(frozen=True)
class Provenance:
    """One value and where it came from: `source` names the file or the variable."""

    name: str
    value: object
    origin: Origin
    source: str
    description: str


@dataclass(frozen=True)
class Loaded:
    """Settings as read once, with what was read where."""

    settings: Settings
    from_file: frozenset[str]
    from_variables: frozenset[str]
    unknown: tuple[str, ...]
    """A sentence for each `PENSTOCK_…` variable that sets nothing."""

    def provenance(self) -> Iterator[Provenance]:
        """Every value, in the order of the model."""
        for name, value, description in leaves(self.settings):
            origin = self.origin(name)
            source = {Origin.VARIABLE: variable(name), Origin.FILE: FILE, Origin.DEFAULT: ""}[origin]
            yield Provenance(name, value, origin, source, description)

    def origin(self, name: str) -> Origin:
        """Where the value of a dotted name came from."""
        if _names_part_of(name, self.from_variables):
            return Origin.VARIABLE
        return Origin.FILE if _names_part_of(name, self.from_file) else Origin.DEFAULT


def load_settings() -> Loaded:
    """Read the settings of this process. SettingsError names each value that cannot be used."""
    root = find_root()
    return _load(root, _read_file(root / FILE))


def check_settings(text: str) -> None:
    """SettingsError where this process could not use settings that its file says so: before they are written."""
    root = find_root()
    _load(root, _read(text, root / FILE))


def _load(root: Path, file: Mapping[str, object]) -> Loaded:
    variables = _read_variables()
    from_file, from_variables = frozenset(_paths(file)), frozenset(_paths(variables))
    try:
        settings = Settings.model_validate({**_merged(file, variables), "root": root})
    except ValidationError as error:
        raise SettingsError(explain_errors(error, lambda name: _within(name, from_variables))) from None
    return Loaded(settings, from_file, from_variables, tuple(unknown_variables(os.environ)))


def find_root() -> Path:
    """PENSTOCK_ROOT, else the checkout that this code belongs to, else the current folder."""
    if named := os.environ.get(PREFIX + "ROOT"):
        return Path(named).expanduser().resolve()
    checkout = Path(penstock.platform.__file__).resolve().parents[3]
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def _read_file(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not TOML ({error}): mend that line, or move the file away") from None
    return _read(text, path)


def _read(text: str, path: Path) -> dict[str, object]:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML ({error}): mend that line, or move the file away") from None
    if "root" in values:
        raise SettingsError(f"{path} sets root, which says where that file is: set {PREFIX}ROOT instead")
    return values


def _read_variables() -> dict[str, object]:
    try:
        return EnvSettingsSource(Settings)()
    except UnreadableVariableError as error:
        raise SettingsError(f"{error} ({error.__cause__}): groups of values are written as JSON") from None


def _merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        merged[name] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _paths(values: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def _within(name: str, paths: frozenset[str]) -> bool:
    return any(path == name or path.startswith(name + ".") for path in paths)


def _names_part_of(name: str, paths: frozenset[str]) -> bool:
    """Whether a value, or some of one that has parts, was read."""
    return name in paths or any(path.startswith(name + ".") for path in paths)


def leaves(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, object, str]]:
    """Every value of a model: its dotted name, the value, its description."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value, field.description or ""
