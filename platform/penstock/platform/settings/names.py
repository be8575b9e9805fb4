"""The dotted names of settings, their variables, and what to say of a name or a value that is wrong."""

import difflib
from collections.abc import Callable, Iterable, Iterator

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from penstock.infra.readiness import READY_FILE
from penstock.platform.settings.model import Settings

PREFIX = "PENSTOCK_"
FILE = "penstock.toml"


def variable(name: str) -> str:
    """The variable that sets a dotted name."""
    return PREFIX + name.replace(".", "__").upper()


def names(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[str]:
    """Every dotted name that can be set."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from names(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def explain_errors(error: ValidationError, is_variable: Callable[[str], bool]) -> str:
    """One clause for each value that cannot be used: its place, the value, what would do."""
    return "; ".join(_explain(detail, is_variable) for detail in error.errors())


def unknown_variables(environment: Iterable[str]) -> Iterator[str]:
    """Variables that look like ours and set nothing: told, not refused, for clusters add some."""
    known = {variable(name) for name in names()} | {variable(name) for name in Settings.model_fields}
    known |= {READY_FILE}  # what a program that is kept is told by its keeper
    for name in sorted(environment):
        if name.startswith(PREFIX) and name.upper() not in known:
            dotted = name.removeprefix(PREFIX).lower().replace("__", ".")
            yield f"{name} sets nothing{_meant(dotted)}"


def _explain(detail: ErrorDetails, is_variable: Callable[[str], bool]) -> str:
    name = ".".join(str(part) for part in detail["loc"] if isinstance(part, str))
    if detail["type"] == "value_error":
        # Raised by a validator of ours: a sentence that names what it is about.
        return detail["msg"].removeprefix("Value error, ")
    place = variable(name) if is_variable(name) else f"{name} in {FILE}"
    if detail["type"] == "extra_forbidden":
        return f"{place} is no setting{_meant(name)}; `penstock status --settings` lists them all"
    return f"{place} is {detail['input']!r}: {detail['msg'].lower()}"


def _meant(name: str) -> str:
    near = difflib.get_close_matches(name, list(names()), n=1, cutoff=0.6)
    return f" (did you mean {variable(near[0])}, {near[0]} in {FILE}?)" if near else ""
