"""Analysis of the SELECT of a SQL step: unknown names, and the columns of its result, without Spark.

Spark's analyzer is the judge: it analyzes each stream when it starts. This module finds in milliseconds what is
certain, so that `explain` can report it. What it does not understand, it leaves to Spark.

The module imports sqlglot, which takes 80 ms. Import it only where there is SQL to analyze.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from penstock.core.names import find_nearest_name
from penstock.engine.definition.argument_checks import require_known_name
from penstock.engine.definition.problem_collector import ProblemCollector

INPUT_VIEW = "input"
UNKNOWN_TYPE = "unknown"

CONSTANT_NAMES = frozenset({
    "current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp",
    "current_user", "localtimestamp", "session_user", "user",
})  # fmt: skip
"""Functions that Spark calls without parentheses."""


@dataclass(frozen=True)
class UnknownName:
    """A name in a query that refers to nothing. Line and column count from 1, and are 0 if unknown."""

    kind: str
    name: str
    known_names: tuple[str, ...]
    line: int = 0
    column: int = 0

    def refuse(self) -> None:
        """Raise the error for the user, with the nearest name."""
        place = f" (line {self.line}, column {self.column} of the query)" if self.line else ""
        shown_names = [name for name in self.known_names if not name.startswith("_")]
        problem = f"there is no {self.kind} {self.name!r}{place}"
        require_known_name(self.name, shown_names, "sql", problem, f"Known {self.kind}s")


def infer_select_columns(text: str, columns: Mapping[str, str | None]) -> Mapping[str, str | None] | None:
    """Return the result columns of a SELECT over `input`, with their types; None if they are unknown.

    `columns` are those of `input`. A type is None if it is unknown. Raises DefinitionError for names that refer to
    nothing. The engine's own columns with a leading underscore are left out.
    """
    query = _parse_query(text)
    if query is None:
        return None
    problems = ProblemCollector()
    unknown_names = list(_find_unknown_tables(query))
    schema = {name: column_type or UNKNOWN_TYPE for name, column_type in columns.items()}
    result: Mapping[str, str | None] | None = None
    try:
        if not unknown_names:
            qualified = qualify(
                query,
                dialect=Spark(),
                schema={INPUT_VIEW: schema},
                allow_partial_qualification=True,
                validate_qualify_columns=False,
                quote_identifiers=False,
            )
            unknown_names = list(_find_unknown_columns(qualified, columns, text))
            result = _read_result_columns(qualified, columns, text)
    except (SqlglotError, RecursionError):
        return None
    for unknown_name in unknown_names:
        with problems.collect():
            unknown_name.refuse()
    problems.raise_problems()
    return result


def _parse_query(text: str) -> exp.Query | None:
    """Return the query; None for what sqlglot cannot parse, which Spark may still understand."""
    try:
        statement = parse_one(text, dialect=Spark())
    except (SqlglotError, RecursionError):
        return None
    return statement if isinstance(statement, exp.Query) else None


def _find_unknown_tables(query: exp.Query) -> Iterator[UnknownName]:
    """Yield table names that are probably meant to be `input`."""
    named_queries = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        name = table.name
        is_known = (
            not name or name.lower() in (INPUT_VIEW, *named_queries) or table.args.get("db") is not None
        )
        if not is_known and find_nearest_name(name, [INPUT_VIEW]):
            yield UnknownName("table", name, (INPUT_VIEW,), *_position_of(table.this))


def _find_unknown_columns(
    query: exp.Expr, columns: Mapping[str, str | None], text: str
) -> Iterator[UnknownName]:
    """Yield the columns that no table of their part of the query has, and the unknown fields of structs."""
    for scope in traverse_scope(query):
        if not isinstance(scope.expression, exp.Select) or scope.is_correlated_subquery or scope.pivots:
            continue
        known_names = _list_known_columns(scope, columns)
        if known_names is None:
            continue
        known_lower_names = {known.lower() for known in known_names}
        # `a.b` may be a field of the struct `a`, which an earlier item of the list defines.
        aliases = {expression.alias_or_name.lower() for expression in scope.expression.selects}
        for column in scope.columns:
            name = column.name
            is_explained = (
                not name or name.startswith("_") or name.lower() in CONSTANT_NAMES | known_lower_names
            )
            is_field = column.table in aliases or isinstance(scope.sources.get(column.table), Scope)
            if not is_explained and not is_field and not isinstance(column.this, exp.Star):
                spelling = _slice_text(column.this, text) or name
                yield UnknownName("column", spelling, known_names, *_position_of(column.this))
    yield from _find_unknown_fields(query, columns)


def _list_known_columns(scope: Scope, columns: Mapping[str, str | None]) -> tuple[str, ...] | None:
    """Return the columns of the tables of a query; None if one is unknown, as is a file that the query reads."""
    known_names: list[str] = []
    for source in scope.sources.values():
        if isinstance(source, exp.Table):
            if source.name.lower() != INPUT_VIEW or source.args.get("pivots"):
                return None
            known_names += columns
        elif isinstance(source.expression, exp.Query):
            known_names += [select.alias_or_name for select in source.expression.selects]
        elif isinstance(source.expression, exp.UDTF) and source.expression.alias_column_names:
            known_names += source.expression.alias_column_names
        else:
            return None
    return None if "*" in known_names else tuple(known_names)


def _find_unknown_fields(query: exp.Expr, columns: Mapping[str, str | None]) -> Iterator[UnknownName]:
    """Yield the fields `a.b` that the struct `a` of the input does not have."""
    types = {name.lower(): column_type for name, column_type in columns.items()}
    for dot in query.find_all(exp.Dot):
        if isinstance(dot.this, exp.Column) and dot.this.table == INPUT_VIEW:
            fields = _list_struct_fields(types.get(dot.this.name.lower()))
            name = dot.expression.name
            is_star = isinstance(dot.expression, exp.Star)
            if fields and name and not is_star and name.lower() not in {field.lower() for field in fields}:
                yield UnknownName("field", name, fields, *_position_of(dot.expression))


def _list_struct_fields(column_type: str | None) -> tuple[str, ...]:
    """Return the names of the fields of a struct type; none for any other type."""
    if column_type is None or not column_type.lower().startswith("struct"):
        return ()
    struct = exp.DataType.build(column_type, dialect=Spark())
    return tuple(field.name for field in struct.expressions)


def _read_result_columns(
    query: exp.Expr, columns: Mapping[str, str | None], text: str
) -> Mapping[str, str | None] | None:
    """Return the columns of the result; None if a name is not written in the query."""
    if not isinstance(query, exp.Select) or query.find(exp.Lateral) is not None:
        return None  # sqlglot adds the fields of structs to the columns of a lateral view
    spelling = {**{name.lower(): name for name in columns}, **_collect_spellings(query, text)}
    root_scope = traverse_scope(query)[-1]
    input_types = {
        table: {name.lower(): column_type for name, column_type in columns.items()}
        for table, source in root_scope.sources.items()
        if isinstance(source, exp.Table)
    }
    result: dict[str, str | None] = {}
    for expression in query.selects:
        if isinstance(expression, exp.Aliases):
            result |= dict.fromkeys(_slice_text(alias, text) or alias.name for alias in expression.aliases)
        elif not _is_named(expression):
            return None
        else:
            value = expression.unalias()
            name = expression.alias_or_name
            written_name = _slice_text(expression.args.get("alias"), text)
            if not written_name:
                if not isinstance(value, exp.Column | exp.Dot):
                    return None
                last_part = value.this if isinstance(value, exp.Column) else value.expression
                written_name = _slice_text(last_part, text)
            result[written_name or spelling.get(name.lower(), name)] = _find_type(value, input_types)
    return {
        name: column_type
        for name, column_type in result.items()
        if not name.startswith("_") or name in columns
    }


def _is_named(expression: exp.Expr) -> bool:
    """Whether the query names the column. sqlglot calls others `_col_1`, and Spark names them after their text."""
    name = expression.alias_or_name
    return name not in ("", "*") and not name.startswith("_col_")


def _collect_spellings(query: exp.Expr, text: str) -> Mapping[str, str]:
    """Return the names that the query gives as they are written; the analysis makes them lower case."""
    identifiers = (alias.args.get("alias") for alias in query.find_all(exp.Alias))
    written_names = (_slice_text(identifier, text) for identifier in identifiers)
    return {name.lower(): name for name in written_names if name}


def _slice_text(identifier: object, text: str) -> str:
    """Return a name as it is written in the query; empty for a name that is not written there."""
    if not isinstance(identifier, exp.Identifier) or identifier.meta_get("end") is None:
        return ""
    return text[identifier.meta_get("start") : identifier.meta_get("end") + 1].strip("`")


def _find_type(value: exp.Expr, input_types: Mapping[str, Mapping[str, str | None]]) -> str | None:
    """Return the type of a column that is passed on or cast; None for a computed one."""
    match value:
        case exp.Column() if value.table in input_types:
            return input_types[value.table].get(value.name)
        case exp.Cast() if isinstance(value.to, exp.DataType):
            return value.to.sql(dialect=Spark())
        case _:
            return None


def _position_of(identifier: object) -> tuple[int, int]:
    """Return the line and the column of the first letter of a name; zeros if they are unknown."""
    if not isinstance(identifier, exp.Identifier):
        return 0, 0
    line, last_column = identifier.meta_get("line"), identifier.meta_get("col")
    if not line or not last_column:
        return 0, 0
    quotes = 2 if identifier.quoted else 0
    return line, max(last_column - len(identifier.name) - quotes + 1, 1)
