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


@dataclass(frozen=True)
class OverArrow:
    """A function from Arrow table to Arrow table, row by row in effect: what it makes of a row depends on no other.

    It must keep the columns `_*` of the rows that it keeps or multiplies, as `filter`, `take` and `append_column`
    do, and it is asked with no rows for the columns that it makes. In a first stage it runs in the executors, in a
    later one where panes are folded.
    """

    function: Opaque


Step: TypeAlias = Apply | Sql | OverArrow
