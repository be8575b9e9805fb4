"""Analysis of a SELECT over `input`: its columns and the names they refer to, without Spark.

The module imports sqlglot, which takes 80 ms. Import it only where there is SQL to analyze.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

SUPPORTED_CLAUSES = frozenset(
    {"expressions", "distinct", "hint", "from_", "where", "order", "sort", "cluster", "distribute", "limit"}
)
"""The parts of a query that leave its columns to the select list. `from_` is sqlglot's name of FROM."""
GRAMMAR_WORDS = frozenset({
    "select", "distinct", "from", "where", "limit", "asc", "desc", "nulls", "first", "last", "as", "case", "when",
    "then", "else", "end", "and", "or", "not", "null", "true", "false", "is", "in", "between", "like", "ilike",
    "rlike", "regexp", "escape", "div", "over", "rows", "range", "unbounded", "preceding", "following", "current",
    "row", "filter", "ignore", "respect", "interval", "for", "both", "leading", "trailing", "placing",
})  # fmt: skip
"""The words of a query that the tree does not name."""


@dataclass(frozen=True)
class SelectItem:
    """A column of the result and the names in its expression; `name` is None for `*`.

    `possible_names` qualify other names. Each is the table, or a column if `input` has one of this name.
    """

    name: str | None
    referenced_names: frozenset[str]
    possible_names: frozenset[str] = frozenset()


class ProjectionParser(SparkParser):
    """A parser that keeps every argument of a function.

    For functions it knows, sqlglot may turn a column into a unit or drop an argument. Only those with a syntax of
    their own need its knowledge.
    """

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, type[exp.Expr]]] = {}
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, type[exp.Func]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST")
    }


def parse_select(sql: str) -> list[SelectItem] | None:
    """Return the columns of a SELECT over `input` alone; None if the query cannot be analyzed.

    The referenced names, in lower case, may include words that are not columns, but never miss one.
    """
    try:
        tokens = Spark().tokenize(sql)
        match ProjectionParser(dialect=Spark()).parse(tokens, sql):
            case [exp.Select() as select] if _has_every_name(select, tokens):
                return _parse_projection(select)
    except (SqlglotError, RecursionError):
        return None
    return None


def _has_every_name(select: exp.Select, tokens: Sequence[Token]) -> bool:
    """Whether the tree has every word of the text that may be the name of a column."""
    words = Counter(
        token.text.lower()
        for token, next_token in pairwise(tokens)
        if (token.token_type is TokenType.IDENTIFIER or token.text.isidentifier())
        and token.token_type not in (TokenType.STRING, TokenType.RAW_STRING)
        and token.token_type not in SparkParser.TYPE_TOKENS
        and next_token.token_type is not TokenType.L_PAREN
    )
    names = Counter(node.name.lower() for node in select.find_all(exp.Identifier, exp.Var))
    return (words - names).keys() <= GRAMMAR_WORDS


def _parse_projection(select: exp.Select) -> list[SelectItem] | None:
    table_name = _find_table_name(select)
    has_other_clauses = any(clause and key not in SUPPORTED_CLAUSES for key, clause in select.args.items())
    has_subquery = any(query is not select for query in select.find_all(exp.Query))
    if table_name is None or has_other_clauses or has_subquery:
        return None
    items: list[SelectItem] = []
    for expression in select.expressions:
        parsed_items = _parse_select_item(expression, table_name)
        if parsed_items is None:
            return None
        items += parsed_items
    return items or None


def _find_table_name(select: exp.Select) -> str | None:
    """Return the name of `input` in the query, which is its alias if it has one; None for any other FROM clause."""
    from_clause = select.args.get("from_")
    table = from_clause.this if from_clause is not None else None
    if not isinstance(table, exp.Table) or any(
        part and key not in ("this", "alias") for key, part in table.args.items()
    ):
        return None
    if (
        not isinstance(table.this, exp.Identifier)
        or table.name.lower() != "input"
        or table.alias_column_names
    ):
        return None
    return table.alias_or_name.lower()


def _parse_select_item(expression: exp.Expr, table_name: str) -> list[SelectItem] | None:
    """Return the columns of one item of the select list; None if it cannot be analyzed."""
    if _is_star(expression, table_name):
        return [SelectItem(None, frozenset())]
    names = _list_result_names(expression)
    if not names or any(map(_hides_columns, expression.walk())):
        return None
    referenced_names: set[str] = set()
    possible_names: set[str] = set()
    for column in expression.find_all(exp.Column):
        first_name, *further_names = (part.name.lower() for part in column.parts)
        if first_name == table_name and further_names:
            possible_names.add(first_name)
            referenced_names.add(further_names[0])
        else:
            referenced_names.add(first_name)
    return [SelectItem(name, frozenset(referenced_names), frozenset(possible_names)) for name in names]


def _is_star(expression: exp.Expr, table_name: str) -> bool:
    """Whether the item is `*` or `input.*`. `struct.*` and `* EXCEPT (a)` have other columns."""
    if isinstance(expression, exp.Column) and [part.name.lower() for part in expression.parts[:-1]] == [
        table_name
    ]:
        expression = expression.this
    return isinstance(expression, exp.Star) and not any(expression.args.values())


def _list_result_names(expression: exp.Expr) -> list[str]:
    """List the names that an item gives to its columns; none if Spark makes up a name."""
    match expression:
        case exp.Alias():
            return [expression.alias]
        case exp.Aliases():
            return [identifier.name for identifier in expression.aliases]
        case exp.Column() | exp.Dot() if _is_dotted_name(expression):
            return [expression.name]
        case _:
            return []


def _is_dotted_name(expression: exp.Expr) -> bool:
    while isinstance(expression, exp.Dot):
        if not isinstance(expression.expression, exp.Identifier):
            return False
        expression = expression.this
    return isinstance(expression, exp.Column) and isinstance(expression.this, exp.Identifier)


def _hides_columns(node: exp.Expr) -> bool:
    """Whether a part of an expression refers to columns that it does not name."""
    match node:
        case exp.Star():
            return not (isinstance(node.parent, exp.Anonymous) and node.parent.name.lower() == "count")
        case exp.Anonymous():
            return node.name.lower() == "identifier"
        case exp.Interval():  # an element of a column that is called `interval`
            return isinstance(node.this, exp.Array)
        case _:
            return False
