"""Parser of queries: a SELECT with its clauses, or several joined by UNION ALL."""

from penstock.engine.errors import DefinitionError
from penstock.stream.sql_loader.emit_parser import parse_emit
from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.queries import AliasedSource, SqlItem, SqlQuery, SqlSelect, SqlUnion
from penstock.stream.sql_loader.source_parser import SourceParser
from penstock.stream.sql_loader.token_groups import (
    Clause,
    is_in_parentheses,
    iter_depths,
    split_clauses,
    split_commas,
)
from penstock.stream.sql_loader.tokens import SqlFile, SqlToken, Tokens
from penstock.stream.sql_loader.values import (
    SqlCall,
    SqlName,
    SqlValue,
    is_call,
    parse_name,
    parse_type,
    parse_value,
)


class QueryParser:
    """Parses queries. A clause with a problem is left out, and its problem is collected by the file."""

    def __init__(self, file: SqlFile) -> None:
        self.file = file
        self.sources = SourceParser(file, self.parse_query)

    def parse_query(self, tokens: Tokens) -> SqlQuery:
        """Parse a query, which may be in parentheses."""
        while is_in_parentheses(tokens):
            tokens = tokens[1:-1]
        unions = [
            position
            for position, depth, token in iter_depths(tokens)
            if depth == 0 and token.upper_word == "UNION"
        ]
        if not unions:
            return self.parse_select(tokens)
        parts: list[SqlQuery] = []
        start = 0
        for end in (*unions, len(tokens)):
            parts.append(self.parse_query(tokens[start:end]))
            if end < len(tokens) and [token.upper_word for token in tokens[end + 1 : end + 2]] != ["ALL"]:
                fix = "Write UNION ALL, and remove duplicates with TABLE(DEDUPLICATE(TABLE topic, ...))"
                raise self.file.problem("UNION", "it would compare all records ever read", fix, tokens[end])
            start = end + 2
        return SqlUnion(parts)

    def parse_select(self, tokens: Tokens) -> SqlSelect:
        """Parse a SELECT."""
        clauses = split_clauses(self.file, tokens)
        if "FROM" not in clauses:
            raise self.file.problem("FROM", "missing", "Write FROM and a topic", tokens[0])
        source, join = self.sources.parse_from(clauses["FROM"][1])
        qualifiers = source.qualifiers if join is None else ()
        content = {name: remove_qualifiers(clause, qualifiers) for name, clause in clauses.items()}
        return SqlSelect(
            first=tokens[0],
            items=self._parse_items(content.get("SELECT", (tokens[0], []))),
            source=source,
            join=join,
            where=self._parse_where(content.get("WHERE"), qualifiers),
            groups=self._parse_values(content.get("GROUP BY"), "GROUP BY"),
            windows=self._parse_values(content.get("WINDOW"), "WINDOW"),
            distribution=self._parse_values(content.get("DISTRIBUTE BY"), "DISTRIBUTE BY"),
            emit=parse_emit(self.file, clauses["EMIT"]) if "EMIT" in clauses else None,
            sinks=self._parse_values(clauses.get("INTO"), "INTO"),
            step_text=self._write_step(clauses, source),
            has_groups="GROUP BY" in clauses,
        )

    def _parse_values(self, clause: Clause | None, part: str) -> list[SqlValue]:
        values: list[SqlValue] = []
        for value in split_commas(self.file, clause[1], part, clause[0]) if clause else ():
            with self.file.collector.collect():
                values.append(parse_value(self.file, value))
        return values

    def _parse_items(self, clause: Clause) -> list[SqlItem]:
        items: list[SqlItem] = []
        first, tokens = clause
        if tokens and tokens[0].upper_word == "DISTINCT":
            fix = "Remove it; TABLE(DEDUPLICATE(TABLE topic, ...)) drops duplicates of an id"
            problem = "DISTINCT would compare all records ever read"
            self.file.collector.add(self.file.problem("SELECT", problem, fix, tokens[0]))
            tokens = tokens[1:]
        for item in split_commas(self.file, tokens, "SELECT", first):
            with self.file.collector.collect():
                items.append(self._parse_item(item))
        return items

    def _parse_item(self, tokens: Tokens) -> SqlItem:
        text, name, value = self.file.place(self.file.slice(tokens), tokens), None, tokens
        if len(tokens) > 2 and tokens[-2].upper_word == "AS" and tokens[-1].is_identifier:
            name, value = self.file.place(tokens[-1].text, tokens[-1:]), tokens[:-2]
        if name is None and len(value) == 1 and value[0].is_symbol("*"):
            return SqlItem("star", None, name, text)
        if (column := parse_name(self.file, value)) is not None:
            return SqlItem("column", SqlName(column), name, text)
        if not is_call(value):
            return SqlItem("expression", None, name, text)
        if value[0].upper_word == "CAST" and len(value) > 5 and value[3].upper_word == "AS":
            cast_type = parse_type(self.file, value[4:-1])
            return SqlItem("cast", SqlName(self.file.place(value[2].text, value[2:3])), name, text, cast_type)
        if value[2].upper_word == "DISTINCT" and value[0].upper_word == "COUNT":
            inner = parse_value(self.file, value[3:-1])
            return SqlItem("call", SqlCall(self.file.place("distinct", value[:1]), (inner,)), name, text)
        return SqlItem("call", self._parse_call(value), name, text)

    def _parse_call(self, tokens: Tokens) -> SqlValue:
        """Return a call; None for the functions of Spark with a syntax of their own."""
        try:
            return parse_value(self.file, tokens)
        except DefinitionError:
            return None

    def _parse_where(self, clause: Clause | None, qualifiers: tuple[str, ...]) -> PlacedText | None:
        if clause is None:
            return None
        first, tokens = clause
        if not tokens:
            raise self.file.problem("WHERE", "the condition is missing", "Write one, as in speed > 50", first)
        text, end = "", tokens[0].start
        for token in tokens:
            between = self.file.text[end : token.start]
            is_gap_of_qualifier = any(between.strip().startswith(f"{each}.") for each in qualifiers)
            text += (" " if is_gap_of_qualifier and text else "" if is_gap_of_qualifier else between) + (
                self.file.text[token.start : token.end]
            )
            end = token.end
        return self.file.place(text, tokens)

    def _write_step(self, clauses: dict[str, Clause], source: AliasedSource) -> PlacedText:
        """Return the SELECT, FROM and WHERE as a statement over the view `input`."""
        first = clauses["SELECT"][0]
        last = next(clauses[name] for name in ("WHERE", "FROM") if name in clauses)[1][-1]
        before, after = (
            self.file.text[first.start : source.tokens[0].start],
            self.file.text[source.tokens[-1].end : last.end],
        )
        uses_name = source.alias is None and any(f"{name}." in before + after for name in source.qualifiers)
        alias = f" AS {source.qualifiers[0]}" if uses_name else ""
        return PlacedText(f"{before}input{alias}{after}", first.line, first.column)


def remove_qualifiers(clause: Clause, qualifiers: tuple[str, ...]) -> tuple[SqlToken, Tokens]:
    """Return a clause whose columns have no `table.` before them."""
    first, tokens = clause
    kept: list[SqlToken] = []
    position = 0
    while position < len(tokens):
        is_qualifier = tokens[position].text in qualifiers and tokens[position].is_identifier
        if is_qualifier and position + 2 < len(tokens) and tokens[position + 1].is_symbol("."):
            position += 2
        kept.append(tokens[position])
        position += 1
    return first, kept
