"""Stateless steps before the window, as data.

What columns there are after `Keep`, `Select` and `PerRow` is known without running anything, so that a wrong name
after them is found when a pipeline is defined; after the others it is known when they are tried with no rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from penstock.pipelines.plan.checks import named, require
from penstock.pipelines.plan.custom import Opaque
from penstock.pipelines.plan.predicates import Predicate, predicate_fields
from penstock.pipelines.plan.source import Column
from penstock.pipelines.plan.types import check_condition, check_words


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


@dataclass(frozen=True)
class Keep:
    """Elements that meet a condition go on."""

    condition: Predicate


@dataclass(frozen=True)
class Select:
    """These columns and no others: pairs of the name that each gets and the name that it has."""

    columns: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        require(len(self.columns) > 0, "select", "no column", "Name the columns that are needed")
        names = [name for name, _ in self.columns]
        twice = next((name for name in names if names.count(name) > 1), "")
        require(not twice, "select", f"two columns become {twice!r}", "Give each a name of its own")
        for name in names:
            fix = "Leave it out: columns that begin with _ are kept by themselves"
            require(not name.startswith("_"), "select", repr(name), fix)


@dataclass(frozen=True)
class PerRow:
    """A function from a row, as a dict, to a row, or to any number of them; `returns` are the columns it gives."""

    function: Opaque
    returns: tuple[Column, ...]
    many: bool = False

    def __post_init__(self) -> None:
        fix = "Say what columns the rows have, as in returns={'word': 'STRING'}"
        require(len(self.returns) > 0, f"{self.word}.returns", "no columns", fix)
        check_words(self.returns, f"{self.word}.returns")

    @property
    def word(self) -> str:
        """Return what people call it."""
        return "flat_map" if self.many else "map"


Step: TypeAlias = Apply | Sql | OverArrow | Lookup | Keep | Select | PerRow

Types: TypeAlias = Mapping[str, str | None]
"""Columns with their types in Spark's words; None where only the name is known."""


@dataclass(frozen=True)
class Prepared:
    """Steps of one input of a stage alone, before it is united with the others."""

    input: str
    steps: tuple[Step, ...]


def columns_after(steps: Iterable[Step], known: Types | None) -> Types | None:
    """Return the columns that there are after some steps, or None where a step does not tell.

    Raises DefinitionError for a column that is named and not there.
    """
    for step in steps:
        match step:
            case Keep(condition):
                _all_there(predicate_fields(condition), known, "filter")
                check_condition(condition, known or {}, "filter")
            case Select(columns):
                _all_there((old for _, old in columns), known, "select")
                known = None if known is None else {new: known[old] for new, old in columns}
            case PerRow(returns=returns):
                known = {column.name: column.type for column in returns}
            case Lookup(columns=columns) if known is not None:
                known = {**known, **{column.name: column.type for column in columns}}
            case _:
                known = None
    return known


def _all_there(names: Iterable[str], known: Types | None, where: str) -> None:
    for name in sorted(names) if known is not None else ():
        fix = f"There is: {', '.join(sorted(known or ()))}"
        require(name in (known or ()), where, f"{name!r} is no column", fix)
