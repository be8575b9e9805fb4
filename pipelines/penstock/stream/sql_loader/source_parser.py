"""Parser of what follows FROM: topics, queries, table functions and joins."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.queries import (
    AliasedSource,
    FunctionSource,
    NamedSource,
    QuerySource,
    SqlJoin,
    SqlQuery,
    SqlSource,
)
from penstock.stream.sql_loader.token_groups import (
    CLAUSES,
    find_closing,
    is_in_parentheses,
    iter_depths,
    split_at,
    split_commas,
    unexpected_token,
)
from penstock.stream.sql_loader.tokens import SqlFile, Tokens
from penstock.stream.sql_loader.values import (
    SqlValue,
    is_call,
    parse_arguments,
    parse_name,
    parse_value,
    put_once,
)

NO_ALIAS = ("AS", "WITH", "ON", "USING", "TABLE")
"""Words that are no alias of a table."""
JOIN_WORDS = ("INNER", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "JOIN", "CROSS")


@dataclass(frozen=True)
class SourceParser:
    """Parses sources. `parse_query` parses a query in parentheses."""

    file: SqlFile
    parse_query: Callable[[Tokens], SqlQuery]

    def parse_from(self, tokens: Tokens) -> tuple[AliasedSource, SqlJoin | None]:
        """Parse the FROM clause: a source, or a join of two."""
        words = [
            (position, token.upper_word)
            for position, depth, token in iter_depths(tokens)
            if depth == 0 and token.upper_word in JOIN_WORDS
        ]
        if not words:
            return self.parse_aliased(tokens), None
        start = words[0][0]
        last = next((position for position, word in words if word == "JOIN"), len(tokens))
        if len([word for _, word in words if word == "JOIN"]) != 1:
            fix = "Join two tables in a query with a name in WITH, and join its rows in the next query"
            raise self.file.problem("JOIN", "a query joins two tables", fix, tokens[start])
        kinds = [word.lower() for _, word in words if word not in ("JOIN", "OUTER")]
        how = kinds[-1] if kinds else "inner"
        placed_how = self.file.place(how, tokens[start : last + 1])
        return self.parse_aliased(tokens[:start]), self._parse_join(placed_how, tokens[last + 1 :])

    def _parse_join(self, how: PlacedText, tokens: Tokens) -> SqlJoin:
        condition = next(
            (
                position
                for position, depth, token in iter_depths(tokens)
                if depth == 0 and token.upper_word in ("ON", "USING")
            ),
            None,
        )
        if condition is None:
            fix = "Write USING (column), or ON left.column = right.column"
            raise self.file.problem("JOIN", "the columns that match are missing", fix, how)
        right, columns = self.parse_aliased(tokens[:condition]), tokens[condition + 1 :]
        if tokens[condition].upper_word == "USING":
            if not is_in_parentheses(columns):
                raise unexpected_token(self.file, "USING", columns[0] if columns else None, ("(",))
            parts = split_commas(self.file, columns[1:-1], "USING", columns[0])
            return SqlJoin(how, right, [self.file.place(part[0].text, part) for part in parts])
        parts = split_at(columns, lambda token: token.upper_word == "AND")
        return SqlJoin(how, right, [self._parse_equality(part, how) for part in parts])

    def _parse_equality(self, tokens: Tokens, how: PlacedText) -> PlacedText:
        """Return the column of `left.column = right.column`."""
        sides = [
            parse_name(self.file, side) if side else None
            for side in split_at(tokens, lambda t: t.is_symbol("="))
        ]
        columns = [side.rpartition(".")[2] for side in sides if side is not None]
        if len(sides) != 2 or len(columns) != 2:
            fix = (
                "Write ON left.column = right.column AND ..., and other conditions in a query before the join"
            )
            raise self.file.problem("ON", f"{self.file.slice(tokens)!r}", fix, tokens[0] if tokens else how)
        if columns[0] != columns[1]:
            fix = f"Rename one of them in a query before the join: SELECT {columns[1]} AS {columns[0]}, ..."
            problem = f"the columns have two names, {columns[0]} and {columns[1]}"
            raise self.file.problem("ON", problem, fix, tokens[0])
        return self.file.place(columns[0], tokens)

    def parse_aliased(self, tokens: Tokens) -> AliasedSource:
        """Parse a source with an optional alias."""
        alias, rest = None, tokens
        if len(tokens) > 1 and tokens[-1].is_identifier and not tokens[-2].is_symbol("."):
            if tokens[-1].upper_word in NO_ALIAS:
                raise unexpected_token(self.file, "FROM", tokens[-1], ("a name",))
            alias = self.file.place(tokens[-1].text, tokens[-1:])
            rest = tokens[:-2] if tokens[-2].upper_word == "AS" else tokens[:-1]
        return AliasedSource(self.parse_source(rest), alias, rest)

    def parse_source(self, tokens: Tokens) -> SqlSource:
        """Parse a topic, a named query, a query in parentheses or a table function."""
        if not tokens:
            raise self.file.problem("FROM", "the table is missing", "Name a topic or a query of WITH", None)
        if is_in_parentheses(tokens):
            return QuerySource(self.parse_query(tokens[1:-1]))
        if tokens[0].upper_word == "TABLE" and is_in_parentheses(tokens[1:]):
            return self.parse_function(tokens[2:-1])
        if is_call(tokens):
            return self.parse_function(tokens)
        if len(tokens) > 1 and tokens[1].is_symbol("."):
            fix = "Name a topic, by the name of its contract, or a query of WITH"
            raise self.file.problem("FROM", f"{self.file.slice(tokens)!r} is not one name", fix, tokens[0])
        if len(tokens) > 1 and tokens[1].is_symbol(","):
            fix = "Write (SELECT * FROM a UNION ALL SELECT * FROM b), or JOIN with USING"
            raise self.file.problem("FROM", "two tables without a join", fix, tokens[1])
        if not tokens[0].is_identifier:
            raise unexpected_token(self.file, "FROM", tokens[0], ("a topic",))
        if len(tokens) > 1 and tokens[1].upper_word != "WITH":
            raise unexpected_token(self.file, "FROM", tokens[1], ("WITH", "JOIN", *CLAUSES))
        return NamedSource(self.file.place(tokens[0].text, tokens[:1]), self.parse_options(tokens, 1))

    def parse_options(self, tokens: Tokens, start: int) -> dict[PlacedText, SqlValue]:
        """Parse `WITH (name = value, ...)` at a position; no options if nothing is there."""
        rest = tokens[start:]
        if not rest or rest[0].upper_word != "WITH":
            return {}
        if not is_in_parentheses(rest[1:]):
            raise unexpected_token(self.file, "WITH", rest[1] if len(rest) > 1 else None, ("(",))
        options: dict[PlacedText, SqlValue] = {}
        for option in split_commas(self.file, rest[2:-1], "WITH", rest[1]):
            sides = split_at(option, lambda token: token.is_symbol("="))
            name = parse_name(self.file, sides[0]) if sides[0] else None
            if len(sides) != 2 or name is None or not sides[1]:
                fix = "Write name = value, as in WITH (idle_after = INTERVAL '30' SECONDS)"
                raise self.file.problem("WITH", f"{self.file.slice(option)!r}", fix, option[0])
            put_once(self.file, options, name, parse_value(self.file, sides[1]), "WITH")
        return options

    def parse_function(self, tokens: Tokens) -> FunctionSource:
        """Parse a table function, such as `TUMBLE(TABLE sensors, DESCRIPTOR(at), INTERVAL '1' MINUTE)`."""
        if not is_call(tokens):
            raise unexpected_token(self.file, "TABLE", tokens[0] if tokens else None, ("a function",))
        name = self.file.place(tokens[0].text, tokens[:1])
        content = tokens[2 : find_closing(tokens, 1)]
        arguments = split_at(content, lambda token: token.is_symbol(","))
        first = arguments[0]
        if [token.upper_word for token in first[:1]] == ["DATA"] and len(first) > 2:
            first = first[2:]  # DATA => TABLE topic, as in Flink
        inner: SqlSource | None = None
        if first and first[0].upper_word == "TABLE":
            is_nested = is_in_parentheses(first[1:]) and is_call(first[2:-1])
            inner = self.parse_source(first if is_nested else first[1:])
        elif first and is_in_parentheses(first) and first[1].upper_word == "SELECT":
            inner = self.parse_source(first)
        rest = content[len(arguments[0]) + 1 :] if inner is not None else content
        return FunctionSource(parse_arguments(self.file, name, rest, tokens[0]), inner)
