"""Conditions on a record as text: `kind = 'end' and (speed > 50 or speed is null)`.

The language is deliberately small: fields, constants, comparisons, `is null`, `and`, `or`, `not`, parentheses, and
`(condition) is not true`, which also holds where the condition is null.
For anything else, add a column in a step before.
"""

import re
from dataclasses import dataclass
from typing import cast

from penstock.engine.definition.argument_checks import require_type
from penstock.engine.definition.phrases import join_phrases
from penstock.engine.definition.predicates import (
    Comparison,
    ComparisonOperator,
    Conjunction,
    Disjunction,
    IsNotTrue,
    IsNull,
    Negation,
    Predicate,
    PredicateConstant,
)
from penstock.engine.errors import DefinitionError

TOKEN_PATTERN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<operator><=|>=|!=|<>|==|=|<|>)"
    r"|(?P<bracket>[()])|(?P<name>[A-Za-z_][A-Za-z_0-9.]*)|`(?P<quoted>[^`]+)`)"
)
KEYWORDS = frozenset({"and", "or", "not", "is", "null", "true", "false"})
TOKEN_PHRASES = {
    "name": ("a field",),
    "operator": ("a comparison such as =",),
    "number": ("a number",),
    "text": ("a 'text' in quotes",),
    "keyword": ("true", "false"),
}
"""What each kind of token is called in messages."""
MAX_NUMBER_DIGITS = 38
"""The most digits of a number that Spark accepts."""
CONDITION_HINT = "Write a condition as in: kind = 'end' and speed > 50"


@dataclass(frozen=True)
class ConditionToken:
    """A token of a condition and its kind."""

    kind: str
    text: str


def parse_condition(text: str, field: str) -> Predicate:
    """Parse a condition. `field` is the location for errors."""
    require_type(text, str, field, CONDITION_HINT)
    parser = ConditionParser(tokenize(text, field), text, field)
    try:
        predicate = parser.parse_disjunction()
    except RecursionError:
        raise DefinitionError(field, f"{text[:80]!r}, nested too deeply", CONDITION_HINT) from None
    parser.expect_end()
    return predicate


def tokenize(text: str, field: str) -> list[ConditionToken]:
    """Split the text into tokens."""
    parsed_tokens: list[ConditionToken] = []
    position, length = 0, len(text.rstrip())
    while position < length:
        match = TOKEN_PATTERN.match(text, position)
        if match is None:
            raise DefinitionError(field, f"{text!r}, at {text[position:]!r}", CONDITION_HINT)
        kind = str(match.lastgroup)
        token_text = match[kind]
        is_keyword = kind == "name" and token_text.lower() in KEYWORDS
        parsed_tokens.append(
            ConditionToken("keyword", token_text.lower()) if is_keyword else ConditionToken(kind, token_text)
        )
        position = match.end()
    return parsed_tokens


class ConditionParser:
    """A recursive descent parser: `or` binds weakest, `not` strongest."""

    def __init__(self, tokens: list[ConditionToken], text: str, field: str) -> None:
        self.tokens = tokens
        self.text = text
        self.field = field

    def parse_disjunction(self) -> Predicate:
        """Parse conditions joined by `or`."""
        parts = [self.parse_conjunction()]
        while self.accept_token("keyword", "or"):
            parts.append(self.parse_conjunction())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts))

    def parse_conjunction(self) -> Predicate:
        """Parse conditions joined by `and`."""
        parts = [self.parse_negation()]
        while self.accept_token("keyword", "and"):
            parts.append(self.parse_negation())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))

    def parse_negation(self) -> Predicate:
        """Parse a condition with an optional `not` before it."""
        if self.accept_token("keyword", "not"):
            return Negation(self.parse_negation())
        if self.accept_token("bracket", "("):
            inner = self.parse_disjunction()
            self.expect_token("bracket", ")")
            return self.parse_truth_test(inner)
        return self.parse_comparison()

    def parse_truth_test(self, inner: Predicate) -> Predicate:
        """Parse `is not true` after a condition in parentheses, which also holds where the condition is null."""
        if not self.accept_token("keyword", "is"):
            return inner
        self.expect_token("keyword", "not")
        self.expect_token("keyword", "true")
        return IsNotTrue(inner)

    def parse_comparison(self) -> Predicate:
        """Parse a comparison of a field. A field without a comparison must be true."""
        name = self.take_token("name", "quoted").text
        if self.accept_token("keyword", "is"):
            is_negated = self.accept_token("keyword", "not")
            self.expect_token("keyword", "null")
            return Negation(IsNull(name)) if is_negated else IsNull(name)
        if not self.tokens or self.tokens[0].kind != "operator":
            return Comparison(name, "=", value=True)
        operator = self.take_token("operator").text.replace("<>", "!=").replace("==", "=")
        return Comparison(name, cast("ComparisonOperator", operator), self.parse_constant())

    def parse_constant(self) -> PredicateConstant:
        """Parse a number, a text or a boolean."""
        token = self.take_token("number", "text", "keyword")
        match token.kind, token.text:
            case "number", text:
                if len(text) > MAX_NUMBER_DIGITS:
                    raise self.syntax_error(f"a number of more than {MAX_NUMBER_DIGITS} digits")
                return float(text) if "." in text else int(text)
            case "text", text:
                return text[1:-1].replace("''", "'")
            case "keyword", ("true" | "false") as text:
                return text == "true"
        raise self.syntax_error(f"{token.text!r} is not a constant")

    def accept_token(self, kind: str, text: str) -> bool:
        """Consume the next token if it matches."""
        if self.tokens and self.tokens[0] == ConditionToken(kind, text):
            self.tokens.pop(0)
            return True
        return False

    def expect_token(self, kind: str, text: str) -> None:
        """Consume this token or raise a syntax error."""
        if not self.accept_token(kind, text):
            raise self.syntax_error(f"{text!r} is missing")

    def take_token(self, *kinds: str) -> ConditionToken:
        """Consume the next token, which must be of one of these kinds."""
        if not self.tokens or self.tokens[0].kind not in kinds:
            phrases = [phrase for kind in kinds for phrase in TOKEN_PHRASES.get(kind, ())]
            expected = join_phrases(phrases, "or")
            if not self.tokens:
                raise self.syntax_error(f"it ends where {expected} is expected")
            raise self.syntax_error(f"{self.tokens[0].text!r} stands where {expected} is expected")
        return self.tokens.pop(0)

    def expect_end(self) -> None:
        """Raise a syntax error if tokens remain."""
        if self.tokens:
            raise self.syntax_error(f"{self.tokens[0].text!r} is unexpected")

    def syntax_error(self, problem: str) -> DefinitionError:
        """Return an error with the text and the problem."""
        return DefinitionError(self.field, f"{self.text!r}: {problem}", CONDITION_HINT)
