"""What a SELECT over `input` makes of its columns, as far as its text tells without Spark."""

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
"""Words after which a SELECT is more than its list says."""
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
    """A word, a name in backticks, a literal, or a sign."""

    kind: str
    text: str

    def is_keyword(self, keyword: str) -> bool:
        """Tell whether it is a word of SQL, however it is written."""
        return self.kind == "word" and self.text.lower() == keyword


@dataclass(frozen=True)
class SelectItem:
    """A column of the result, and the names that its expression has; `name` is None for all columns there are."""

    name: str | None
    referenced_names: frozenset[str]


def parse_select(sql: str) -> list[SelectItem] | None:
    """Return the columns of a SELECT over `input` alone; None where its text does not tell.

    Names are those of the text that may be columns: more than there are, and never fewer.
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
    """Yield what lies between tokens of a kind that no bracket holds."""
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
    """Tell whether what follows FROM is `input`, and at most a condition."""
    if (
        not tokens
        or not tokens[0].is_keyword("input")
        or any(token.text.lower() in _UNSUPPORTED_KEYWORDS for token in tokens)
    ):
        return False
    from_clause = next(iter(_split_tokens(tokens, lambda token: token.is_keyword("where"))))
    return all(token.kind in ("word", "quoted") for token in from_clause)


def _parse_select_item(tokens: Sequence[SqlToken]) -> SelectItem | None:
    """What one item of the list makes; None where that cannot be told."""
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
