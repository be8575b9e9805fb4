"""Stateless steps before the window, as data."""

from dataclasses import dataclass
from typing import TypeAlias

from penstock.pipelines.plan.checks import named
from penstock.pipelines.plan.custom import Opaque


@dataclass(frozen=True)
class Apply:
    """A function from DataFrame to DataFrame; it must be stateless and keep the columns `_*` as they are."""

    function: Opaque


@dataclass(frozen=True)
class Sql:
    """A SELECT over the view `input`."""

    text: str

    def __post_init__(self) -> None:
        named(self.text, "sql")


Step: TypeAlias = Apply | Sql
