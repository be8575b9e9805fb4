"""The steps of a pipeline before its window: each takes rows and gives rows, and remembers nothing."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from penstock.pipelines.model.conditions import condition as condition_of
from penstock.pipelines.model.written import columns_of, names_of
from penstock.pipelines.plan.checks import of_kind, require
from penstock.pipelines.plan.custom import opaque
from penstock.pipelines.plan.predicates import Unmet
from penstock.pipelines.plan.steps import Apply, Keep, Lookup, OverArrow, PerRow, Select, Sql, Step


class Stepping(ABC):
    """What has steps; every method returns a new one with a step more."""

    @abstractmethod
    def _stepped(self, step: Step) -> Self:
        """Return the same with this step after those that it has."""

    def apply(self, function: Callable[..., Any], version: str | None = None) -> Self:
        """Add a step from DataFrame to DataFrame; `version` stands for its code in the plan's fingerprint."""
        require(callable(function), "apply", repr(function), "Give a function from DataFrame to DataFrame")
        return self._stepped(Apply(opaque(function, version)))

    def sql(self, text: str) -> Self:
        """Add a step in SQL: a SELECT over `input`."""
        return self._stepped(Sql(text))

    def arrow(self, function: Callable[..., Any], version: str | None = None) -> Self:
        """Add a step from Arrow table to Arrow table; it keeps the columns `_*` of the rows that it keeps."""
        require(
            callable(function), "arrow", repr(function), "Give a function from pyarrow.Table to pyarrow.Table"
        )
        return self._stepped(OverArrow(opaque(function, version)))

    def lookup(self, table: str, *, on: str | Sequence[str], columns: Mapping[str, str]) -> Self:
        """Add columns of a Delta table to each record, by fields that both have; nulls where it has no such row.

        `table` is a path below the warehouse, as in `latest/cards`, or an address; `columns` names what is wanted,
        with types in Spark's words. Which version a batch sees is written down before the batch has any effect.
        """
        fields = names_of(on, "lookup.on")
        wanted = columns_of(columns, "lookup.columns")
        return self._stepped(Lookup(table, fields, wanted))

    def filter(self, condition: str) -> Self:
        """Let those go on that meet a condition, such as `kind = 'end' and speed > 50`."""
        return self._stepped(Keep(condition_of(condition, "filter")))

    def select(self, *columns: str, **named: str) -> Self:
        """Go on with these columns alone, some under another name, as in `.select("user", bid_price="price")`."""
        for name in (*columns, *named.values()):
            of_kind(name, str, "select", "Name columns, as in select('user', paid='amount')")
        pairs = ((name, name) for name in columns)
        return self._stepped(Select((*pairs, *named.items())))

    def map(
        self, function: Callable[..., Any], returns: Mapping[str, str], version: str | None = None
    ) -> Self:
        """Make one row of each, by a function from dict to dict; `returns` names its columns and their types."""
        return self._per_row(function, returns, version, many=False)

    def flat_map(
        self, function: Callable[..., Any], returns: Mapping[str, str], version: str | None = None
    ) -> Self:
        """Make any number of rows of each, by a function from dict to dicts; `returns` is as in map."""
        return self._per_row(function, returns, version, many=True)

    def _per_row(
        self, function: Callable[..., Any], returns: Mapping[str, str], version: str | None, *, many: bool
    ) -> Self:
        word = "flat_map" if many else "map"
        require(
            callable(function), word, repr(function), "Give a function of one row, which it has as a dict"
        )
        columns = columns_of(returns, f"{word}.returns")
        return self._stepped(PerRow(opaque(function, version), columns, many))

    def branches(self, *conditions: str) -> tuple[Self, ...]:
        """Part the records: each goes to the first branch whose condition it meets, the rest to a last one."""
        require(
            len(conditions) > 0,
            "branches",
            "no condition",
            "Write conditions, as in branches('amount > 100')",
        )
        found = [condition_of(text, "branches") for text in conditions]
        rest = self
        parted = []
        for each in found:
            parted.append(rest._stepped(Keep(each)))
            rest = rest._stepped(Keep(Unmet(each)))
        return (*parted, rest)
