"""Conditions on a record as text: `kind = 'end' and (speed > 50 or speed is null)`.

The language is small on purpose: fields, constants, comparisons, `is null`, `and`, `or`, `not`, parentheses.
What needs more belongs into a step before, as a column of its own.
"""

import re
from dataclasses import dataclass
from typing import cast

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.checks import of_kind
from penstock.pipelines.plan.predicates import (
    Compare,
    Conjunction,
    Constant,
    Disjunction,
    IsNull,
    Negation,
    Operator,
    Predicate,
)

TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<operator><=|>=|!=|<>|==|=|<|>)"
    r"|(?P<bracket>[()])|(?P<name>[A-Za-z_][A-Za-z_0-9.]*)|`(?P<quoted>[^`]+)`)"
)
WORDS = frozenset({"and", "or", "not", "is", "null", "true", "false"})
DIGITS = 38
"""Digits of the longest number that Spark reads."""
FIX = "Write a condition as in: kind = 'end' and speed > 50"


@dataclass(frozen=True)
class Token:
    """A word of the text, and what sort of word it is."""

    sort: str
    text: str


def condition(text: str, field: str) -> Predicate:
    """Read a condition; `field` names the place for the error."""
    of_kind(text, str, field, FIX)
    reader = Reader(tokens(text, field), text, field)
    try:
        found = reader.disjunction()
    except RecursionError:
        raise DefinitionError(field, f"{text[:80]!r}, nested too deep", FIX) from None
    reader.end()
    return found


def tokens(text: str, field: str) -> list[Token]:
    """Cut the text into words."""
    found: list[Token] = []
    position, length = 0, len(text.rstrip())
    while position < length:
        match = TOKEN.match(text, position)
        if match is None:
            raise DefinitionError(field, f"{text!r}, at {text[position:]!r}", FIX)
        sort = str(match.lastgroup)
        word = match[sort]
        keyword = sort == "name" and word.lower() in WORDS
        found.append(Token("word", word.lower()) if keyword else Token(sort, word))
        position = match.end()
    return found


class Reader:
    """Reads words into a condition: `or` binds weakest, `not` strongest."""

    def __init__(self, words: list[Token], text: str, field: str) -> None:
        self.words = words
        self.text = text
        self.field = field

    def disjunction(self) -> Predicate:
        """Read conditions joined by `or`."""
        parts = [self.conjunction()]
        while self.accept("word", "or"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts))

    def conjunction(self) -> Predicate:
        """Read conditions joined by `and`."""
        parts = [self.negation()]
        while self.accept("word", "and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))

    def negation(self) -> Predicate:
        """Read a condition that may have `not` before it."""
        if self.accept("word", "not"):
            return Negation(self.negation())
        if self.accept("bracket", "("):
            inner = self.disjunction()
            self.expect("bracket", ")")
            return inner
        return self.comparison()

    def comparison(self) -> Predicate:
        """Read a field and what it is compared with; a bare field must be true."""
        name = self.take("name", "quoted").text
        if self.accept("word", "is"):
            negative = self.accept("word", "not")
            self.expect("word", "null")
            return Negation(IsNull(name)) if negative else IsNull(name)
        if not self.words or self.words[0].sort != "operator":
            return Compare(name, "=", value=True)
        operator = self.take("operator").text.replace("<>", "!=").replace("==", "=")
        return Compare(name, cast("Operator", operator), self.constant())

    def constant(self) -> Constant:
        """Read a number, a text or a truth value."""
        token = self.take("number", "text", "word")
        match token.sort, token.text:
            case "number", text:
                if len(text) > DIGITS:
                    raise self.wrong(f"a number of more than {DIGITS} digits")
                return float(text) if "." in text else int(text)
            case "text", text:
                return text[1:-1].replace("''", "'")
            case "word", ("true" | "false") as text:
                return text == "true"
        raise self.wrong(f"{token.text!r} is no constant")

    def accept(self, sort: str, text: str) -> bool:
        """Take the next word if it is this one."""
        if self.words and self.words[0] == Token(sort, text):
            self.words.pop(0)
            return True
        return False

    def expect(self, sort: str, text: str) -> None:
        """Take this word, or refuse the text."""
        if not self.accept(sort, text):
            raise self.wrong(f"{text!r} is missing")

    def take(self, *sorts: str) -> Token:
        """Take the next word, which must be of one of these sorts."""
        if not self.words or self.words[0].sort not in sorts:
            found = repr(self.words[0].text) if self.words else "the end"
            raise self.wrong(f"{found} where a {' or '.join(sorts)} belongs")
        return self.words.pop(0)

    def end(self) -> None:
        """Refuse what is left over."""
        if self.words:
            raise self.wrong(f"{self.words[0].text!r} is left over")

    def wrong(self, what: str) -> DefinitionError:
        """Describe what is wrong with the text."""
        return DefinitionError(self.field, f"{self.text!r}: {what}", FIX)
