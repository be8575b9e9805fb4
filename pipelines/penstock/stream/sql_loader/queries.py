"""Queries as data: what each clause of a SELECT says, before it is known what its tables are."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.tokens import SqlToken, Tokens
from penstock.stream.sql_loader.values import SqlCall, SqlValue

ItemKind: TypeAlias = Literal["star", "column", "call", "cast", "expression"]


@dataclass(frozen=True)
class SqlItem:
    """An item of a select list. `value` is the column, the call, or the column that is cast."""

    kind: ItemKind
    value: SqlValue
    name: PlacedText | None
    text: PlacedText
    cast_type: PlacedText | None = None


@dataclass(frozen=True)
class NamedSource:
    """A name after FROM: a topic with its options, or a query of WITH."""

    name: PlacedText
    options: dict[PlacedText, SqlValue]


@dataclass(frozen=True)
class QuerySource:
    """A query in parentheses."""

    query: "SqlQuery"


@dataclass(frozen=True)
class FunctionSource:
    """A table function: a window, a step or an input. `inner` is its table, if it has one."""

    call: SqlCall
    inner: "SqlSource | None"


SqlSource: TypeAlias = NamedSource | QuerySource | FunctionSource


@dataclass(frozen=True)
class AliasedSource:
    """A source with the names that qualify its columns."""

    source: SqlSource
    alias: PlacedText | None
    tokens: Tokens

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The names that may precede a column."""
        source = self.source
        while isinstance(source, FunctionSource) and source.inner is not None:
            source = source.inner
        table = (source.name,) if isinstance(source, NamedSource) else ()
        return (self.alias,) if self.alias else table


@dataclass(frozen=True)
class SqlJoin:
    """A join: its kind, the right side, and the columns that both sides have."""

    how: PlacedText
    right: AliasedSource
    by: list[PlacedText]


@dataclass(frozen=True)
class SqlEmit:
    """The EMIT clause: a trigger, and words with values: the options of triggers, and the accumulation."""

    trigger: SqlValue = None
    words: dict[PlacedText, SqlValue] = field(default_factory=dict)


@dataclass(frozen=True)
class SqlSelect:
    """A SELECT. `step_text` is its statement over the view `input`."""

    first: SqlToken
    items: list[SqlItem]
    source: AliasedSource
    join: SqlJoin | None
    where: PlacedText | None
    groups: list[SqlValue]
    windows: list[SqlValue]
    distribution: list[SqlValue]
    emit: SqlEmit | None
    sinks: list[SqlValue]
    step_text: PlacedText
    has_groups: bool = False


@dataclass(frozen=True)
class SqlUnion:
    """Queries joined by UNION ALL."""

    parts: "list[SqlQuery]"


SqlQuery: TypeAlias = SqlSelect | SqlUnion


@dataclass(frozen=True)
class SqlStatement:
    """A CREATE STREAM statement."""

    name: PlacedText
    options: dict[PlacedText, SqlValue]
    named_queries: dict[PlacedText, SqlQuery]
    query: SqlQuery
