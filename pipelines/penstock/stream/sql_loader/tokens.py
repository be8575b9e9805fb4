"""Tokens of a SQL file, by sqlglot's tokenizer of Spark SQL, each with line and column."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from penstock.core.display_path import display_path
from penstock.engine.definition.problem_collector import ProblemCollector
from penstock.engine.errors import DefinitionError
from penstock.stream.sql_loader.placed_text import PlacedText

TokenKind: TypeAlias = Literal["word", "name", "text", "number", "symbol"]
"""`name` is an identifier in backticks, `word` any other one or a keyword of SQL."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_COMPLETE_PARTS = re.compile(
    r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|/\*.*?\*/|--[^\n]*|[^'"`/-]|/(?!\*)|-)*""", re.DOTALL
)
"""All up to a text, name or comment that does not end."""
_QUOTES: dict[str, TokenKind] = {"`": "name", "'": "text", '"': "text"}


@dataclass(frozen=True)
class SqlToken:
    """A token. `text` is its value, without quotes; `start` and `end` are its range in the file."""

    kind: TokenKind
    text: str
    line: int
    column: int
    start: int
    end: int

    @property
    def upper_word(self) -> str:
        """The word in upper case; an empty text for other tokens."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def is_identifier(self) -> bool:
        """Whether it may name a column, a table or a function."""
        return self.kind in ("word", "name")

    def is_symbol(self, text: str) -> bool:
        """Whether it is this symbol."""
        return self.kind == "symbol" and self.text == text


Tokens: TypeAlias = Sequence[SqlToken]


@dataclass
class SqlFile:
    """The text of a SQL file, and the problems that were found in it so far."""

    path: Path
    text: str
    collector: ProblemCollector = field(default_factory=ProblemCollector)

    def slice(self, tokens: Tokens) -> str:
        """Return what the user wrote from the first token to the last one."""
        return self.text[tokens[0].start : tokens[-1].end] if tokens else ""

    def place(self, text: str, tokens: Tokens) -> PlacedText:
        """Return a text that stands for these tokens."""
        return PlacedText(text, tokens[0].line, tokens[0].column, self.slice(tokens))

    def problem(self, part: str, problem: str, fix: str, at: SqlToken | PlacedText | None) -> DefinitionError:
        """Return an error at a token or a text, or at the end of the file."""
        line, column = (at.line, at.column) if at is not None else self._position(len(self.text.rstrip()))
        return DefinitionError(part, problem, fix, display_path(self.path, line, column))

    def tokenize(self) -> list[SqlToken]:
        """Return the tokens. Raises DefinitionError for a text or comment that does not end."""
        try:
            tokens = Spark().tokenize(self.text)
        except TokenError:
            complete = _COMPLETE_PARTS.match(self.text)
            line, column = self._position(complete.end() if complete else 0)
            fix = "End it with the same quote, or with */"
            location = display_path(self.path, line, column)
            raise DefinitionError("SQL", "a text, name or comment does not end", fix, location) from None
        return list(_join_doubled_quotes(part for token in tokens for part in self._convert(token)))

    def _convert(self, token: Token) -> Iterator[SqlToken]:
        """Yield the tokens of a token of sqlglot, which may be several words, such as GROUP BY."""
        start, end = token.start, token.end + 1
        written = self.text[start:end]
        kind = _QUOTES.get(written[:1])
        if kind is None and token.token_type is TokenType.NUMBER:
            kind = "number"
        if kind is not None:
            yield SqlToken(kind, token.text, *self._position(start), start, end)
            return
        for part in re.finditer(r"\S+", written):
            part_kind: TokenKind = "word" if _WORD.fullmatch(part[0]) else "symbol"
            position = self._position(start + part.start())
            yield SqlToken(part_kind, part[0], *position, start + part.start(), start + part.end())

    def _position(self, offset: int) -> tuple[int, int]:
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)


def _join_doubled_quotes(tokens: Iterable[SqlToken]) -> Iterator[SqlToken]:
    """Yield the tokens with `'it''s'` as one text, as standard SQL writes a quote."""
    pending: SqlToken | None = None
    for token in tokens:
        if pending and pending.kind == token.kind == "text" and pending.end == token.start:
            text = f"{pending.text}'{token.text}"
            pending = SqlToken("text", text, pending.line, pending.column, pending.start, token.end)
            continue
        if pending:
            yield pending
        pending = token
    if pending:
        yield pending
