"""Finds regular expressions that Java rejects, when a pipeline is loaded and not at the first record.

Only certain errors are reported. Java alone knows its full grammar, so unknown syntax is accepted.
"""

import re
from dataclasses import dataclass

KNOWN_ESCAPES = frozenset("0123456789tnrfaecdDhHsSvVwWpPbBAGZzRXkxuNQE")
"""Letters and digits that have a meaning after a backslash; any other character there is literal."""
COUNT_PATTERN = re.compile(r"\{(\d+)(,(\d*))?\}")
GROUP_PATTERN = re.compile(r"\?(?::|=|!|>|<=|<!|<[a-zA-Z][a-zA-Z0-9]*>|[idmsuU]*(?:-[idmsuU]+)?:)")
FLAGS_PATTERN = re.compile(r"\?[idmsuU]*(?:-[idmsuU]+)?\)")
LONG_ESCAPE_PATTERN = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|[A-Za-z])|x(?:\{[0-9a-fA-F]+\}|[0-9a-fA-F]{2})|u[0-9a-fA-F]{4}|0[0-7])"
)
UNSUPPORTED_PATTERN = re.compile(r"\(\?[a-zA-Z-]*x|&&|\\[EkNc]|\\Q(?!.*\\E)", re.DOTALL)
"""Comments, nested character classes and names: they may change the meaning of the text around them."""


class _RegexFault(Exception):  # noqa: N818  # what is found is the answer, no error
    """An error in an expression; the text says what is wrong."""


@dataclass
class _RegexReader:
    """Reads an expression from left to right.

    `repeatable` tells whether a quantifier may follow, if that is known.
    """

    text: str
    position: int = 0
    depth: int = 0
    is_repeatable: bool | None = False

    def read_expression(self) -> None:
        while self.position < len(self.text):
            self._read_token()
        if self.depth:
            raise _RegexFault("unclosed (")

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
                    raise _RegexFault("unmatched )")
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
            raise _RegexFault("trailing backslash")
        if next_character == "Q":
            self.position = self.text.index("\\E", self.position) + 2
        elif next_character in "pPxu0":
            long_escape = LONG_ESCAPE_PATTERN.match(self.text, self.position)
            if long_escape is None:
                raise _RegexFault(f"\\{next_character} needs an argument")
            self.position = long_escape.end()
        elif next_character.isascii() and next_character.isalnum() and next_character not in KNOWN_ESCAPES:
            raise _RegexFault(f"\\{next_character} is not an escape")
        else:
            self.position += 2

    def _read_class(self) -> None:
        """Read a character class and the classes inside it; a leading ] is a literal."""
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
        raise _RegexFault("unclosed [")

    def _read_class_character(self, character: str) -> None:
        """Read one character or a range of a character class."""
        range_end = self.text[self.position + 2 : self.position + 3]
        is_range = self.text.startswith("-", self.position + 1) and range_end not in ("", "[", "]")
        if not is_range or range_end == "\\":
            self.position += 1 + is_range
            return
        if range_end < character:
            raise _RegexFault(f"the range {character}-{range_end} is reversed")
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
                    f"({self.text[self.position : self.position + 3]} is not a group; "
                    "write a named group as (?<name>...)"
                )
            self.position = group.end()
        self.depth, self.is_repeatable = self.depth + 1, False

    def _read_quantifier(self, quantifier: str) -> None:
        if self.is_repeatable is False and quantifier != "{":
            raise _RegexFault(f"nothing to repeat before {quantifier}")
        end = self.position + 1
        if quantifier == "{":
            count = COUNT_PATTERN.match(self.text, self.position)
            if count is None:
                raise _RegexFault("{ without a count; write a literal brace as \\{")
            if count[3] and int(count[3]) < int(count[1]):
                raise _RegexFault(f"the count {count[0]} is reversed")
            end = count.end()
        self.position = end + (self.text[end : end + 1] in ("?", "+"))
        self.is_repeatable = None if quantifier == "{" else False


def find_regex_fault(expression: str) -> str | None:
    """Describe why Java rejects an expression; return None if it does not, or if that is unknown."""
    if UNSUPPORTED_PATTERN.search(expression):
        return None
    try:
        _RegexReader(expression).read_expression()
    except _RegexFault as regex_fault:
        return str(regex_fault)
    return None
