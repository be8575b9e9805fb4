"""Groups of tokens: parts between commas, the content of parentheses, and the clauses of a query."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from penstock.core.names import suggest_name
from penstock.engine.errors import DefinitionError
from penstock.stream.sql_loader.tokens import SqlFile, SqlToken, Tokens

CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP BY", "WINDOW", "DISTRIBUTE BY", "EMIT", "INTO")
REFUSED_CLAUSES = {
    "HAVING": "Name this query in WITH, and filter its rows by WHERE in the next one",
    "QUALIFY": "Name this query in WITH, and filter its rows by WHERE in the next one",
    "ORDER BY": "Remove it: a stream has no last row. For the greatest values, aggregate with TOP(n, column)",
    "SORT BY": "Remove it: a stream has no last row. For the greatest values, aggregate with TOP(n, column)",
    "LIMIT": "Remove it: a stream does not end. For the greatest values, aggregate with TOP(n, column)",
    "CLUSTER BY": "Remove it: GROUP BY is the key",
    "LATERAL VIEW": "Write the statement as a step: TABLE(SQL(TABLE topic, 'SELECT ... FROM input ...'))",
}
"""Clauses that no stream has, and what to write."""

Clause: TypeAlias = tuple[SqlToken, Tokens]
"""The first word of a clause, and the tokens after its words."""


def iter_depths(tokens: Tokens) -> Iterator[tuple[int, int, SqlToken]]:
    """Yield the position of each token, the number of open parentheses around it, and the token."""
    depth = 0
    for position, token in enumerate(tokens):
        if token.is_symbol(")"):
            depth -= 1
        yield position, depth, token
        if token.is_symbol("("):
            depth += 1


def require_balanced(file: SqlFile, tokens: Tokens) -> None:
    """Raise DefinitionError for a parenthesis without its partner."""
    open_tokens: list[SqlToken] = []
    for token in tokens:
        if token.is_symbol("("):
            open_tokens.append(token)
        elif token.is_symbol(")"):
            if not open_tokens:
                raise file.problem("SQL", "')' closes nothing", "Remove it, or open it before", token)
            open_tokens.pop()
    if open_tokens:
        raise file.problem("SQL", "'(' is not closed", "Add the missing ')'", open_tokens[-1])


def split_at(tokens: Tokens, is_separator: Callable[[SqlToken], bool]) -> list[Tokens]:
    """Return the parts between separators that are in no parentheses."""
    parts: list[Tokens] = []
    start = 0
    for position, depth, token in iter_depths(tokens):
        if depth == 0 and is_separator(token):
            parts.append(tokens[start:position])
            start = position + 1
    return [*parts, tokens[start:]]


def split_commas(file: SqlFile, tokens: Tokens, part: str, after: SqlToken | None) -> list[Tokens]:
    """Return the parts between commas. Raises DefinitionError for an empty one."""
    parts = split_at(tokens, lambda token: token.is_symbol(","))
    if any(len(each) == 0 for each in parts):
        place = next((token for token in tokens if token.is_symbol(",")), after)
        raise file.problem(
            part, "an item is missing", "Write one between the commas, or remove a comma", place
        )
    return parts


def find_closing(tokens: Tokens, opening: int) -> int:
    """Return the position of the parenthesis that closes the one at `opening`; the end if none does."""
    closing = (
        position
        for position, depth, token in iter_depths(tokens[opening:])
        if depth == 0 and position > 0 and token.is_symbol(")")
    )
    return next(closing, len(tokens) - opening) + opening


def is_in_parentheses(tokens: Tokens) -> bool:
    """Whether one pair of parentheses encloses all tokens."""
    return len(tokens) > 1 and tokens[0].is_symbol("(") and find_closing(tokens, 0) == len(tokens) - 1


def split_clauses(file: SqlFile, tokens: Tokens) -> dict[str, Clause]:
    """Return the clauses of a query by name. Clauses that no stream has are collected as problems."""
    starts: list[tuple[int, str]] = []
    for position, depth, _ in iter_depths(tokens):
        name = _find_clause(tokens, position) if depth == 0 else ""
        if name:
            starts.append((position, name))
    if not starts or starts[0][0] != 0:
        raise unexpected_token(file, "SQL", tokens[0] if tokens else None, ("SELECT",))
    clauses: dict[str, Clause] = {}
    ends = [position for position, _ in starts[1:]] + [len(tokens)]
    for (position, name), end in zip(starts, ends, strict=True):
        first = tokens[position]
        with file.collector.collect():
            if name in REFUSED_CLAUSES:
                raise file.problem(name, "a stream has no such clause", REFUSED_CLAUSES[name], first)
            if name in clauses:
                raise file.problem(name, "written twice", "Remove one of them", first)
            clauses[name] = first, tokens[position + len(name.split()) : end]
    return clauses


def _find_clause(tokens: Tokens, position: int) -> str:
    """Return the name of the clause that starts at a position; an empty text if none does."""
    word = tokens[position].upper_word
    next_word = tokens[position + 1].upper_word if position + 1 < len(tokens) else ""
    known_names = (*CLAUSES, *REFUSED_CLAUSES)
    return next((name for name in (f"{word} {next_word}", word) if name in known_names), "")


def unexpected_token(
    file: SqlFile, part: str, token: SqlToken | None, expected: tuple[str, ...]
) -> DefinitionError:
    """Return the error of a token that does not fit, with the nearest of the expected words."""
    if token is None:
        return file.problem(part, "the statement ends here", f"Write {' or '.join(expected)}", None)
    first_words = (word.partition(" ")[0] for word in expected)
    suggestion = suggest_name(token.text.upper(), (*expected, *first_words)).lstrip()
    fix = suggestion or f"Write {' or '.join(expected)}"
    return file.problem(part, f"{token.text!r} is unexpected", fix, token)
