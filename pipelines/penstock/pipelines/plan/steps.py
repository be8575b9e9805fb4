"""Stateless steps before the window, as data."""

from dataclasses import dataclass
from typing import TypeAlias

from penstock.pipelines.plan.checks import named, require
from penstock.pipelines.plan.custom import Opaque
from penstock.pipelines.plan.source import Column


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


@dataclass(frozen=True)
class Lookup:
    """Columns of a Delta table, beside each record whose fields `on` the table has a row for; nulls beside others.

    The version of the table is written down with a batch before the batch has any effect: run again, or replayed,
    it sees that version. A table has one row at most for each value of `on`.
    """

    table: str
    on: tuple[str, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        named(self.table, "lookup.table")
        require(len(self.on) > 0, "lookup.on", "no field", "Name the field by which a row is found")
        fix = "Say which columns are wanted, as in columns={'limit': 'DOUBLE'}"
        require(len(self.columns) > 0, "lookup.columns", "no columns", fix)
        for column in self.columns:
            fix = "Leave it out: it is in the record already"
            require(
                column.name not in self.on, f"lookup.columns.{column.name}", "the field looked up by", fix
            )


Step: TypeAlias = Apply | Sql | OverArrow | Lookup


def lookups(steps: "tuple[Step, ...]") -> "tuple[Lookup, ...]":
    """Return the tables that steps look into."""
    return tuple(step for step in steps if isinstance(step, Lookup))
