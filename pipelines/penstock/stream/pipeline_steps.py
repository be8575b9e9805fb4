"""The stateless steps of a pipeline before its window."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from penstock.engine.definition.argument_checks import require, require_type
from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.definition.predicates import IsNotTrue
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.plan.declared_columns import find_annotated_columns
from penstock.engine.plan.sources import Column
from penstock.engine.plan.steps import (
    ApplyStep,
    ArrowStep,
    FilterStep,
    LookupStep,
    RowFunctionStep,
    SelectStep,
    SqlStep,
    Step,
)
from penstock.stream.arguments import parse_columns, parse_names


class PipelineSteps(ABC):
    """Methods that add steps. Each returns a new definition with one more step."""

    @abstractmethod
    def _with_step(self, step: Step) -> Self:
        """Return a copy with this step at the end."""

    def apply(
        self,
        function: Callable[..., Any],
        version: str | None = None,
        *,
        returns: Mapping[str, str] | None = None,
    ) -> Self:
        """Add a step from DataFrame to DataFrame.

        Args:
            function: a function that takes and returns a pyspark DataFrame. It must be stateless, and keep the
                columns that start with `_`.
            version: replaces the hash of the function's code in the fingerprint of the plan.
            returns: all columns of the result, with Spark SQL types, without those that start with `_`. A return
                annotation such as `Annotated[DataFrame, {"city": "STRING"}]` declares them, too.

        Example:
            .apply(add_tax, returns={"country": "STRING", "at": "BIGINT", "tax": "DOUBLE"})

        Not promised: without declared columns, that wrong columns are found before the stream starts.
        """
        require(callable(function), "apply", repr(function), "Give a function from DataFrame to DataFrame")
        columns = _parse_declared_columns("apply", function, returns)
        return self._with_step(ApplyStep(function_ref(function, version), columns))

    def sql(self, text: str) -> Self:
        """Add a SQL step.

        Args:
            text: a SELECT over the view `input`, without aggregates.

        Example:
            .sql("SELECT *, amount / 100 AS euros FROM input WHERE amount > 0")
        """
        return self._with_step(SqlStep(text))

    def arrow(
        self,
        function: Callable[..., Any],
        version: str | None = None,
        *,
        returns: Mapping[str, str] | None = None,
    ) -> Self:
        """Add a step from Arrow table to Arrow table.

        Args:
            function: a function that takes and returns a pyarrow Table. The result for a row must not depend on
                other rows. It keeps the columns that start with `_`, and returns its columns also for a table
                without rows.
            version: replaces the hash of the function's code in the fingerprint of the plan.
            returns: all columns of the result, as in `apply`.
        """
        require(
            callable(function), "arrow", repr(function), "Give a function from pyarrow.Table to pyarrow.Table"
        )
        columns = _parse_declared_columns("arrow", function, returns)
        return self._with_step(ArrowStep(function_ref(function, version), columns))

    def lookup(self, table: str, *, on: str | Sequence[str], columns: Mapping[str, str]) -> Self:
        """Add columns of a Delta table to each record, or nulls if no row matches.

        Args:
            table: a path below the warehouse, as in `latest/cards`, or a URI. It has at most one row for each key.
            on: the field or fields to match.
            columns: the columns to add, with their Spark SQL types.

        Example:
            .lookup("latest/cards", on="card", columns={"limit": "DOUBLE"})

        The table version of a batch is recorded before the batch has any effect. A replay uses the same version.
        Not promised: that a batch sees rows which were written after it started.
        """
        key_fields = parse_names(on, "lookup.on")
        lookup_columns = parse_columns(columns, "lookup.columns")
        return self._with_step(LookupStep(table, key_fields, lookup_columns))

    def filter(self, condition: str) -> Self:
        """Keep the records that meet a condition.

        Args:
            condition: fields, constants, comparisons, `is null`, `and`, `or`, `not`, parentheses. See `sql` for
                more.

        Example:
            .filter("kind = 'end' and speed > 50")
        """
        return self._with_step(FilterStep(parse_condition(condition, "filter")))

    def select(self, *columns: str, **named: str) -> Self:
        """Keep only these columns, optionally renamed. Columns that start with `_` are kept automatically.

        Args:
            columns: the names of columns to keep.
            named: new names, and the names of their columns.

        Example:
            .select("user", bid_price="price")
        """
        for name in (*columns, *named.values()):
            require_type(name, str, "select", "Name columns, as in select('user', paid='amount')")
        column_pairs = ((name, name) for name in columns)
        return self._with_step(SelectStep((*column_pairs, *named.items())))

    def map(
        self, function: Callable[..., Any], returns: Mapping[str, str], version: str | None = None
    ) -> Self:
        """Convert each record to one row.

        Args:
            function: a function from dict to dict.
            returns: the columns of the rows, with Spark SQL types.
            version: replaces the hash of the function's code in the fingerprint of the plan.

        Example:
            .map(parse_address, returns={"city": "STRING", "at": "BIGINT"})

        Not promised: a function that changes its result for the same record. A batch may run again.
        """
        return self._add_row_function(function, returns, version, many=False)

    def flat_map(
        self, function: Callable[..., Any], returns: Mapping[str, str], version: str | None = None
    ) -> Self:
        """Convert each record to any number of rows.

        Args:
            function: a function from dict to an iterable of dicts.
            returns: the columns of the rows, with Spark SQL types.
            version: replaces the hash of the function's code in the fingerprint of the plan.

        Example:
            .flat_map(split_words, returns={"word": "STRING", "at": "BIGINT"})
        """
        return self._add_row_function(function, returns, version, many=True)

    def _add_row_function(
        self, function: Callable[..., Any], returns: Mapping[str, str], version: str | None, *, many: bool
    ) -> Self:
        keyword = "flat_map" if many else "map"
        require(callable(function), keyword, repr(function), "Give a function that takes a row as a dict")
        columns = parse_columns(returns, f"{keyword}.returns")
        return self._with_step(RowFunctionStep(function_ref(function, version), columns, many))

    def branches(self, *conditions: str) -> tuple[Self, ...]:
        """Split the records: each goes to the first branch whose condition it meets, or to the last one.

        Args:
            conditions: the condition of each branch but the last.

        Returns the branches, one more than conditions.

        Example:
            large, small = read("cards").branches("amount > 100")
        """
        require(
            len(conditions) > 0,
            "branches",
            "no condition",
            "Write conditions, as in branches('amount > 100')",
        )
        predicates = [parse_condition(text, "branches") for text in conditions]
        remaining = self
        branch_pipelines = []
        for predicate in predicates:
            branch_pipelines.append(remaining._with_step(FilterStep(predicate)))
            remaining = remaining._with_step(FilterStep(IsNotTrue(predicate)))
        return (*branch_pipelines, remaining)


def _parse_declared_columns(
    keyword: str, function: Callable[..., Any], returns: Mapping[str, str] | None
) -> tuple[Column, ...]:
    """Return the columns that a function from table to table declares; none if it declares none."""
    declared = find_annotated_columns(function) if returns is None else returns
    return () if declared is None else parse_columns(declared, f"{keyword}.returns")
