"""Stateless steps before the window, as data.

The columns after `FilterStep`, `SelectStep`, `LookupStep`, `RowFunctionStep` and most `SqlStep`s are known without
running them, so a wrong column name is found when the pipeline is defined. Other steps run on an empty table when
the stream starts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.engine.definition.argument_checks import require, require_name
from penstock.engine.definition.predicates import Predicate, predicate_fields
from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.definition.stored_fields import OMITTED_AT_DEFAULT
from penstock.engine.definition.user_functions import FunctionRef
from penstock.engine.plan.column_types import check_column_types, check_condition_types
from penstock.engine.plan.known_columns import require_known_column
from penstock.engine.plan.sources import Column
from penstock.engine.plan.user_function_checks import check_row_function, check_table_function


@dataclass(frozen=True)
class ApplyStep:
    """A function from DataFrame to DataFrame. It must be stateless and keep columns with a leading `_`.

    `returns` are all columns of its result; if it is empty, they are unknown until the stream starts.
    """

    function: FunctionRef
    returns: tuple[Column, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        check_column_types(self.returns, "apply.returns")


@dataclass(frozen=True)
class SqlStep:
    """A SELECT over the view `input`."""

    text: str

    def __post_init__(self) -> None:
        require_name(self.text, "sql")


@dataclass(frozen=True)
class ArrowStep:
    """A function from Arrow table to Arrow table. The result for a row must not depend on other rows.

    It must keep the columns with a leading `_` for each row that it keeps or multiplies, as `filter`, `take` and
    `append_column` do. It is called with an empty table to find its columns. In a first stage it runs in the
    executors, in a later stage where its panes are aggregated. `returns` are all columns of its result; if it is
    empty, they are unknown until the stream starts.
    """

    function: FunctionRef
    returns: tuple[Column, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        check_column_types(self.returns, "arrow.returns")


@dataclass(frozen=True)
class LookupStep:
    """Columns of a Delta table that are added to each record by the fields `on`, or nulls if no row matches.

    The table version of a batch is recorded before the batch has any effect; retries and replays use that version.
    A table has at most one row for each value of `on`.
    """

    table: str
    on: tuple[str, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        require_name(self.table, "lookup.table")
        require(len(self.on) > 0, "lookup.on", "no field", "Name the fields of the lookup key")
        fix = "Declare the columns to add, as in columns={'limit': 'DOUBLE'}"
        require(len(self.columns) > 0, "lookup.columns", "no columns", fix)
        for column in self.columns:
            fix = "Remove it: the record already has it"
            require(column.name not in self.on, f"lookup.columns.{column.name}", "it is a lookup key", fix)


@dataclass(frozen=True)
class FilterStep:
    """Keeps the elements that meet a condition."""

    condition: Predicate


@dataclass(frozen=True)
class SelectStep:
    """Keeps only these columns: pairs of new name and old name."""

    columns: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        require(len(self.columns) > 0, "select", "no column", "Name the columns that are needed")
        names = [name for name, _ in self.columns]
        duplicate_name = next((name for name in names if names.count(name) > 1), "")
        require(
            not duplicate_name,
            "select",
            f"two columns are named {duplicate_name!r}",
            "Give each column a unique name",
        )
        for name in names:
            fix = "Remove it: columns with a leading _ are kept automatically"
            require(not name.startswith("_"), "select", repr(name), fix)


@dataclass(frozen=True)
class RowFunctionStep:
    """A function from a row as a dict to one row or any number of rows. `returns` declares their columns."""

    function: FunctionRef
    returns: tuple[Column, ...]
    many: bool = False

    def __post_init__(self) -> None:
        fix = "Declare the columns of the rows, as in returns={'word': 'STRING'}"
        require(len(self.returns) > 0, f"{self.keyword}.returns", "no columns", fix)
        check_column_types(self.returns, f"{self.keyword}.returns")

    @property
    def keyword(self) -> str:
        """Return the keyword of the step in a definition."""
        return "flat_map" if self.many else "map"


Step: TypeAlias = ApplyStep | SqlStep | ArrowStep | LookupStep | FilterStep | SelectStep | RowFunctionStep

TypesByColumn: TypeAlias = Mapping[str, str | None]
"""Columns with their Spark SQL types, or None for an unknown type."""


def step_kind(step: Step) -> str:
    """Return the name of a kind of step, as in "a SQL step"."""
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
    """Steps of one input of a stage, before the union with the others."""

    input: str
    steps: tuple[Step, ...]


def infer_columns(
    steps: Iterable[Step], columns_before: TypesByColumn | None, collector: ProblemCollector | None = None
) -> TypesByColumn | None:
    """Return the columns after the steps, or None if they are unknown.

    A step that uses a column that does not exist is a problem. With a collector, the problems of all steps are
    added to it; otherwise they are raised as DefinitionError.
    """
    step_problems = collector or ProblemCollector()
    for step in steps:
        match step:
            case FilterStep(condition):
                _require_columns(predicate_fields(condition), columns_before, "filter", step_problems)
                with step_problems.collect():
                    check_condition_types(condition, columns_before or {}, "filter")
            case SelectStep(step_columns):
                _require_columns((old for _, old in step_columns), columns_before, "select", step_problems)
                columns_before = _select_columns(step_columns, columns_before)
            case RowFunctionStep(function=function, returns=returns):
                if function.function is not None:
                    with step_problems.collect():
                        check_row_function(step.keyword, function.function, returns, columns_before)
                columns_before = {column.name: column.type for column in returns}
            case SqlStep(text):
                columns_after: TypesByColumn | None = None
                with step_problems.collect():
                    columns_after = _infer_sql_columns(text, columns_before)
                columns_before = columns_after
            case ApplyStep(function, returns):
                with step_problems.collect():
                    _check_table_function("apply", function, "records", "DataFrame")
                columns_before = _read_declared_columns(returns)
            case ArrowStep(function, returns):
                with step_problems.collect():
                    _check_table_function("arrow", function, "table", "pyarrow.Table")
                columns_before = _read_declared_columns(returns)
            case LookupStep(columns=step_columns) if columns_before is not None:
                columns_before = {**columns_before, **{column.name: column.type for column in step_columns}}
            case _:
                columns_before = None
    if collector is None:
        step_problems.raise_problems()
    return columns_before


def _check_table_function(keyword: str, function: FunctionRef, argument: str, result: str) -> None:
    if function.function is not None:
        check_table_function(keyword, function.function, argument, result)


def _read_declared_columns(returns: Iterable[Column]) -> TypesByColumn | None:
    return {column.name: column.type for column in returns} or None


def _select_columns(
    step_columns: Iterable[tuple[str, str]], columns: TypesByColumn | None
) -> TypesByColumn | None:
    """Return the selected columns. After a problem they are unknown, so that it is reported once."""
    pairs = tuple(step_columns)
    if columns is None or any(old not in columns for _, old in pairs):
        return None
    return {new: columns[old] for new, old in pairs}


def _infer_sql_columns(text: str, columns: TypesByColumn | None) -> TypesByColumn | None:
    # Imported here, because most pipelines have no SQL, and sqlglot takes 80 ms.
    from penstock.engine.definition.sql_analysis import infer_select_columns

    return None if columns is None else infer_select_columns(text, columns)


def _require_columns(
    names: Iterable[str], columns: TypesByColumn | None, field: str, step_problems: ProblemCollector
) -> None:
    for name in sorted(names) if columns is not None else ():
        with step_problems.collect():
            require_known_column(name, columns or {}, field, f"there is no column {name!r}", "Known columns")
