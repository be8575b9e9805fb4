"""Stateless steps before the window, as data.

What columns there are after `FilterStep`, `SelectStep` and `RowFunctionStep` is known without running anything, so
that a wrong name after them is found when a pipeline is defined; after the others it is known when they are tried
with no rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from penstock.engine.plan.column_types import check_column_types, check_condition_types
from penstock.engine.plan.predicates import Predicate, predicate_fields
from penstock.engine.plan.sources import Column
from penstock.engine.plan.user_functions import FunctionRef
from penstock.engine.plan.validation.argument_checks import require, require_name


@dataclass(frozen=True)
class ApplyStep:
    """A function from DataFrame to DataFrame; it must be stateless and keep the columns `_*` as they are."""

    function: FunctionRef


@dataclass(frozen=True)
class SqlStep:
    """A SELECT over the view `input`."""

    text: str

    def __post_init__(self) -> None:
        require_name(self.text, "sql")


@dataclass(frozen=True)
class ArrowStep:
    """A function from Arrow table to Arrow table, row by row in effect: what it makes of a row depends on no other.

    It must keep the columns `_*` of the rows that it keeps or multiplies, as `filter`, `take` and `append_column`
    do, and it is asked with no rows for the columns that it makes. In a first stage it runs in the executors, in a
    later one where panes are folded.
    """

    function: FunctionRef


@dataclass(frozen=True)
class LookupStep:
    """Columns of a Delta table, beside each record whose fields `on` the table has a row for; nulls beside others.

    The version of the table is written down with a batch before the batch has any effect: run again, or replayed,
    it sees that version. A table has one row at most for each value of `on`.
    """

    table: str
    on: tuple[str, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        require_name(self.table, "lookup.table")
        require(len(self.on) > 0, "lookup.on", "no field", "Name the field by which a row is found")
        fix = "Say which columns are wanted, as in columns={'limit': 'DOUBLE'}"
        require(len(self.columns) > 0, "lookup.columns", "no columns", fix)
        for column in self.columns:
            fix = "Leave it out: it is in the record already"
            require(
                column.name not in self.on, f"lookup.columns.{column.name}", "the field looked up by", fix
            )


@dataclass(frozen=True)
class FilterStep:
    """Elements that meet a condition go on."""

    condition: Predicate


@dataclass(frozen=True)
class SelectStep:
    """These columns and no others: pairs of the name that each gets and the name that it has."""

    columns: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        require(len(self.columns) > 0, "select", "no column", "Name the columns that are needed")
        names = [name for name, _ in self.columns]
        duplicate_name = next((name for name in names if names.count(name) > 1), "")
        require(
            not duplicate_name,
            "select",
            f"two columns become {duplicate_name!r}",
            "Give each a name of its own",
        )
        for name in names:
            fix = "Leave it out: columns that begin with _ are kept by themselves"
            require(not name.startswith("_"), "select", repr(name), fix)


@dataclass(frozen=True)
class RowFunctionStep:
    """A function from a row, as a dict, to a row, or to any number of them; `returns` are the columns it gives."""

    function: FunctionRef
    returns: tuple[Column, ...]
    many: bool = False

    def __post_init__(self) -> None:
        fix = "Say what columns the rows have, as in returns={'word': 'STRING'}"
        require(len(self.returns) > 0, f"{self.keyword}.returns", "no columns", fix)
        check_column_types(self.returns, f"{self.keyword}.returns")

    @property
    def keyword(self) -> str:
        """Return what people call it."""
        return "flat_map" if self.many else "map"


Step: TypeAlias = ApplyStep | SqlStep | ArrowStep | LookupStep | FilterStep | SelectStep | RowFunctionStep

TypesByColumn: TypeAlias = Mapping[str, str | None]
"""Columns with their types in Spark's words; None where only the name is known."""


def step_kind(step: Step) -> str:
    """Return what people call a step, as in "a SQL step"."""
    match step:
        case ApplyStep():
            return "DataFrame"
        case SqlStep():
            return "SQL"
        case ArrowStep():
            return "Arrow"
        case LookupStep():
            return "lookup"
        case FilterStep():
            return "filter"
        case SelectStep():
            return "select"
        case RowFunctionStep():
            return step.keyword


@dataclass(frozen=True)
class InputSteps:
    """Steps of one input of a stage alone, before it is united with the others."""

    input: str
    steps: tuple[Step, ...]


def infer_columns(steps: Iterable[Step], columns_before: TypesByColumn | None) -> TypesByColumn | None:
    """Return the columns that there are after some steps, or None where a step does not tell.

    Raises DefinitionError for a column that is named and not there.
    """
    for step in steps:
        match step:
            case FilterStep(condition):
                _require_columns(predicate_fields(condition), columns_before, "filter")
                check_condition_types(condition, columns_before or {}, "filter")
            case SelectStep(step_columns):
                _require_columns((old for _, old in step_columns), columns_before, "select")
                columns_before = (
                    None
                    if columns_before is None
                    else {new: columns_before[old] for new, old in step_columns}
                )
            case RowFunctionStep(returns=returns):
                columns_before = {column.name: column.type for column in returns}
            case LookupStep(columns=step_columns) if columns_before is not None:
                columns_before = {**columns_before, **{column.name: column.type for column in step_columns}}
            case _:
                columns_before = None
    return columns_before


def _require_columns(names: Iterable[str], columns: TypesByColumn | None, field: str) -> None:
    for name in sorted(names) if columns is not None else ():
        fix = f"There is: {', '.join(sorted(columns or ()))}"
        require(name in (columns or ()), field, f"{name!r} is no column", fix)
