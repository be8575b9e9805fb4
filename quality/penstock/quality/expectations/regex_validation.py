"""Regular expressions that Java refuses, found when a pipeline is loaded: the first record would end the stream.

Only what is certainly wrong is said, as Java alone knows all of its grammar: what is not known here is let through.
"""

import re
from dataclasses import dataclass

KNOWN_ESCAPES = frozenset("0123456789tnrfaecdDhHsSvVwWpPbBAGZzRXkxuNQE")
"""Letters and digits that mean something after a backslash; any other sign there is plain."""
COUNT_PATTERN = re.compile(r"\{(\d+)(,(\d*))?\}")
GROUP_PATTERN = re.compile(r"\?(?::|=|!|>|<=|<!|<[a-zA-Z][a-zA-Z0-9]*>|[idmsuU]*(?:-[idmsuU]+)?:)")
FLAGS_PATTERN = re.compile(r"\?[idmsuU]*(?:-[idmsuU]+)?\)")
LONG_ESCAPE_PATTERN = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|[A-Za-z])|x(?:\{[0-9a-fA-F]+\}|[0-9a-fA-F]{2})|u[0-9a-fA-F]{4}|0[0-7])"
)
UNSUPPORTED_PATTERN = re.compile(r"\(\?[a-zA-Z-]*x|&&|\\[EkNc]|\\Q(?!.*\\E)", re.DOTALL)
"""Comments, sets within sets, and names: what is written around them may mean another thing."""


class _RegexFault(Exception):  # noqa: N818  # what is found is the answer, no error
    """What is wrong, to be said after the place."""


@dataclass
class _RegexReader:
    """An expression, read from left to right; `repeatable` says it of what was read last, where that is known."""

    text: str
    position: int = 0
    depth: int = 0
    is_repeatable: bool | None = False

    def read_expression(self) -> None:
        while self.position < len(self.text):
            self._read_token()
        if self.depth:
            raise _RegexFault("a ( is not closed")

    def _read_token(self) -> None:
        match self.text[self.position]:
            case "\\":
                self._read_escape()
                self.is_repeatable = True
            case "[":
                self._read_class()
                self.is_repeatable = True
            case "(":
                self._read_group()
            case ")":
                if not self.depth:
                    raise _RegexFault("a ) closes nothing")
                self.depth, self.position, self.is_repeatable = self.depth - 1, self.position + 1, True
            case "|":
                self.position, self.is_repeatable = self.position + 1, False
            case "*" | "+" | "?" | "{" as character:
                self._read_quantifier(character)
            case character:
                self.position, self.is_repeatable = self.position + 1, None if character in "^$" else True

    def _read_escape(self) -> None:
        next_character = self.text[self.position + 1 : self.position + 2]
        if not next_character:
            raise _RegexFault("it ends with a backslash")
        if next_character == "Q":
            self.position = self.text.index("\\E", self.position) + 2
        elif next_character in "pPxu0":
            long_escape = LONG_ESCAPE_PATTERN.match(self.text, self.position)
            if long_escape is None:
                raise _RegexFault(f"\\{next_character} is not followed by what it names")
            self.position = long_escape.end()
        elif next_character.isascii() and next_character.isalnum() and next_character not in KNOWN_ESCAPES:
            raise _RegexFault(f"\\{next_character} means nothing")
        else:
            self.position += 2

    def _read_class(self) -> None:
        """Read a set of characters, and those within it; a ] that comes first is one of them."""
        self.position += 1
        self.position += self.text.startswith("^", self.position)
        is_first = True
        while self.position < len(self.text):
            character = self.text[self.position]
            if character == "]" and not is_first:
                self.position += 1
                return
            is_first = False
            if character == "[":
                self._read_class()
            elif character == "\\":
                self._read_escape()
            else:
                self._read_class_character(character)
        raise _RegexFault("a [ is not closed")

    def _read_class_character(self, character: str) -> None:
        """Read a character of a set, or two with all between them."""
        range_end = self.text[self.position + 2 : self.position + 3]
        is_range = self.text.startswith("-", self.position + 1) and range_end not in ("", "[", "]")
        if not is_range or range_end == "\\":
            self.position += 1 + is_range
            return
        if range_end < character:
            raise _RegexFault(f"{character}-{range_end} is the wrong way round")
        self.position += 3

    def _read_group(self) -> None:
        self.position += 1
        if flags := FLAGS_PATTERN.match(self.text, self.position):
            self.position, self.is_repeatable = flags.end(), None
            return
        if self.text.startswith("?", self.position):
            group = GROUP_PATTERN.match(self.text, self.position)
            if group is None:
                raise _RegexFault(
                    f"({self.text[self.position : self.position + 3]} begins no group; "
                    "a name is written (?<name>...)"
                )
            self.position = group.end()
        self.depth, self.is_repeatable = self.depth + 1, False

    def _read_quantifier(self, quantifier: str) -> None:
        if self.is_repeatable is False and quantifier != "{":
            raise _RegexFault(f"{quantifier} repeats nothing")
        end = self.position + 1
        if quantifier == "{":
            count = COUNT_PATTERN.match(self.text, self.position)
            if count is None:
                raise _RegexFault("a { is followed by no count; a plain one is written \\{")
            if count[3] and int(count[3]) < int(count[1]):
                raise _RegexFault(f"{count[0]} is the wrong way round")
            end = count.end()
        self.position = end + (self.text[end : end + 1] in ("?", "+"))
        self.is_repeatable = None if quantifier == "{" else False


def find_regex_fault(expression: str) -> str | None:
    """Say why Java refuses an expression; None where it takes it, or where that is not known."""
    if UNSUPPORTED_PATTERN.search(expression):
        return None
    try:
        _RegexReader(expression).read_expression()
    except _RegexFault as regex_fault:
        return str(regex_fault)
    return None
