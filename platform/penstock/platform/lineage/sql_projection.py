"""Analysis of a SELECT over `input`: its columns and the names they refer to, without Spark."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_TOKEN_PATTERN = re.compile(
    r"\s+|--[^\n]*|/\*.*?\*/"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<quoted>`[^`]+`)|(?P<word>[^\W\d]\w*)|(?P<rest>\d[\w.]*|[^\w\s])",
    re.DOTALL,
)
_UNSUPPORTED_KEYWORDS = {
    "union",
    "intersect",
    "except",
    "minus",
    "group",
    "having",
    "lateral",
    "join",
    "window",
    "limit",
}
"""Keywords of queries that the select list alone does not describe."""
_EXPRESSION_KEYWORDS = {
    "as",
    "case",
    "when",
    "then",
    "else",
    "end",
    "and",
    "or",
    "not",
    "null",
    "is",
    "in",
    "cast",
    "distinct",
}


@dataclass(frozen=True)
class SqlToken:
    """A word, a quoted name, a literal, or a symbol."""

    kind: str
    text: str

    def is_keyword(self, keyword: str) -> bool:
        """Whether the token is this SQL keyword, in any case."""
        return self.kind == "word" and self.text.lower() == keyword


@dataclass(frozen=True)
class SelectItem:
    """A column of the result and the names in its expression; `name` is None for `*`."""

    name: str | None
    referenced_names: frozenset[str]


def parse_select(sql: str) -> list[SelectItem] | None:
    """Return the columns of a SELECT over `input` alone; None if the query cannot be analyzed.

    The referenced names may include words that are not columns, but never miss one.
    """
    tokens = list(_tokenize(sql))
    if (
        not tokens
        or not tokens[0].is_keyword("select")
        or any(token.is_keyword("select") for token in tokens[1:])
    ):
        return None
    parts = list(_split_tokens(tokens[1:], lambda token: token.is_keyword("from")))
    if len(parts) != 2 or not _is_plain_input(parts[1]):
        return None
    item_tokens = parts[0][1:] if parts[0] and parts[0][0].is_keyword("distinct") else parts[0]
    items = [_parse_select_item(part) for part in _split_tokens(item_tokens, lambda token: token.text == ",")]
    return None if None in items else [item for item in items if item is not None]


def _tokenize(sql: str) -> Iterator[SqlToken]:
    for token_match in _TOKEN_PATTERN.finditer(sql):
        if token_match.lastgroup is not None:
            yield SqlToken(token_match.lastgroup, token_match.group().strip("`"))


def _split_tokens(
    tokens: Sequence[SqlToken], is_separator: Callable[[SqlToken], bool]
) -> Iterator[list[SqlToken]]:
    """Split tokens at the separators outside of brackets."""
    part: list[SqlToken] = []
    depth = 0
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]") if token.kind == "rest" else 0
        if depth == 0 and is_separator(token):
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _is_plain_input(tokens: Sequence[SqlToken]) -> bool:
    """Whether the FROM clause is `input` with at most a WHERE condition."""
    if (
        not tokens
        or not tokens[0].is_keyword("input")
        or any(token.text.lower() in _UNSUPPORTED_KEYWORDS for token in tokens)
    ):
        return False
    from_clause = next(iter(_split_tokens(tokens, lambda token: token.is_keyword("where"))))
    return all(token.kind in ("word", "quoted") for token in from_clause)


def _parse_select_item(tokens: Sequence[SqlToken]) -> SelectItem | None:
    """Parse one item of the select list; None if it cannot be analyzed."""
    if not tokens:
        return None
    if tokens[-1].text == "*" and len(tokens) in (1, 3):
        return SelectItem(None, frozenset())
    has_name = tokens[-1].kind in ("word", "quoted")
    if tokens[0].text == "*" or not has_name:
        return None
    referenced_names = (
        _list_referenced_names(tokens[:-1])
        if len(tokens) > 1 and tokens[-2].text != "."
        else {tokens[-1].text.lower()}
    )
    return SelectItem(tokens[-1].text, frozenset(referenced_names))


def _list_referenced_names(tokens: Sequence[SqlToken]) -> set[str]:
    next_tokens = [*tokens[1:], SqlToken("rest", "")]
    return {
        token.text.lower()
        for token, next_token in zip(tokens, next_tokens, strict=True)
        if token.kind == "quoted"
        or (
            token.kind == "word" and next_token.text != "(" and token.text.lower() not in _EXPRESSION_KEYWORDS
        )
    }
