"""What a SELECT over `input` makes of its columns, as far as its text tells without Spark."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s+|--[^\n]*|/\*.*?\*/"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<quoted>`[^`]+`)|(?P<word>[^\W\d]\w*)|(?P<rest>\d[\w.]*|[^\w\s])",
    re.DOTALL,
)
_BEYOND = {"union", "intersect", "except", "minus", "group", "having", "lateral", "join", "window", "limit"}
"""Words after which a SELECT is more than its list says."""
_OF_SQL = {
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
class Token:
    """A word, a name in backticks, a literal, or a sign."""

    kind: str
    text: str

    def is_word(self, word: str) -> bool:
        """Tell whether it is a word of SQL, however it is written."""
        return self.kind == "word" and self.text.lower() == word


@dataclass(frozen=True)
class Projected:
    """A column of the result, and the names that its expression has; `name` is None for all columns there are."""

    name: str | None
    names: frozenset[str]


def projected(text: str) -> list[Projected] | None:
    """Return the columns of a SELECT over `input` alone; None where its text does not tell.

    Names are those of the text that may be columns: more than there are, and never fewer.
    """
    tokens = list(_tokens(text))
    if not tokens or not tokens[0].is_word("select") or any(token.is_word("select") for token in tokens[1:]):
        return None
    parts = list(_split(tokens[1:], lambda token: token.is_word("from")))
    if len(parts) != 2 or not _of_input(parts[1]):
        return None
    chosen = parts[0][1:] if parts[0] and parts[0][0].is_word("distinct") else parts[0]
    items = [_item(part) for part in _split(chosen, lambda token: token.text == ",")]
    return None if None in items else [item for item in items if item is not None]


def _tokens(text: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup is not None:
            yield Token(found.lastgroup, found.group().strip("`"))


def _split(tokens: Sequence[Token], ends: Callable[[Token], bool]) -> Iterator[list[Token]]:
    """Yield what lies between tokens of a kind that no bracket holds."""
    part: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]") if token.kind == "rest" else 0
        if depth == 0 and ends(token):
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _of_input(tokens: Sequence[Token]) -> bool:
    """Tell whether what follows FROM is `input`, and at most a condition."""
    if not tokens or not tokens[0].is_word("input") or any(token.text.lower() in _BEYOND for token in tokens):
        return False
    before = next(iter(_split(tokens, lambda token: token.is_word("where"))))
    return all(token.kind in ("word", "quoted") for token in before)


def _item(tokens: Sequence[Token]) -> Projected | None:
    """What one item of the list makes; None where that cannot be told."""
    if not tokens:
        return None
    if tokens[-1].text == "*" and len(tokens) in (1, 3):
        return Projected(None, frozenset())
    named = tokens[-1].kind in ("word", "quoted")
    if tokens[0].text == "*" or not named:
        return None
    names = _names(tokens[:-1]) if len(tokens) > 1 and tokens[-2].text != "." else {tokens[-1].text.lower()}
    return Projected(tokens[-1].text, frozenset(names))


def _names(tokens: Sequence[Token]) -> set[str]:
    follows = [*tokens[1:], Token("rest", "")]
    return {
        token.text.lower()
        for token, after in zip(tokens, follows, strict=True)
        if token.kind == "quoted"
        or (token.kind == "word" and after.text != "(" and token.text.lower() not in _OF_SQL)
    }
