"""Regular expressions that Java refuses, found when a pipeline is loaded: the first record would end the stream.

Only what is certainly wrong is said, as Java alone knows all of its grammar: what is not known here is let through.
"""

import re
from dataclasses import dataclass

ESCAPES = frozenset("0123456789tnrfaecdDhHsSvVwWpPbBAGZzRXkxuNQE")
"""Letters and digits that mean something after a backslash; any other sign there is plain."""
COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
GROUP = re.compile(r"\?(?::|=|!|>|<=|<!|<[a-zA-Z][a-zA-Z0-9]*>|[idmsuU]*(?:-[idmsuU]+)?:)")
FLAGS = re.compile(r"\?[idmsuU]*(?:-[idmsuU]+)?\)")
SPELLED = re.compile(
    r"\\(?:[pP](?:\{[^}]*\}|[A-Za-z])|x(?:\{[0-9a-fA-F]+\}|[0-9a-fA-F]{2})|u[0-9a-fA-F]{4}|0[0-7])"
)
UNKNOWN = re.compile(r"\(\?[a-zA-Z-]*x|&&|\\[EkNc]|\\Q(?!.*\\E)", re.DOTALL)
"""Comments, sets within sets, and names: what is written around them may mean another thing."""


class _Fault(Exception):  # noqa: N818  # what is found is the answer, no error
    """What is wrong, to be said after the place."""


@dataclass
class _Reader:
    """An expression, read from left to right; `repeatable` says it of what was read last, where that is known."""

    text: str
    at: int = 0
    depth: int = 0
    repeatable: bool | None = False

    def whole(self) -> None:
        while self.at < len(self.text):
            self._one()
        if self.depth:
            raise _Fault("a ( is not closed")

    def _one(self) -> None:
        match self.text[self.at]:
            case "\\":
                self._escape()
                self.repeatable = True
            case "[":
                self._set()
                self.repeatable = True
            case "(":
                self._group()
            case ")":
                if not self.depth:
                    raise _Fault("a ) closes nothing")
                self.depth, self.at, self.repeatable = self.depth - 1, self.at + 1, True
            case "|":
                self.at, self.repeatable = self.at + 1, False
            case "*" | "+" | "?" | "{" as sign:
                self._repetition(sign)
            case sign:
                self.at, self.repeatable = self.at + 1, None if sign in "^$" else True

    def _escape(self) -> None:
        follows = self.text[self.at + 1 : self.at + 2]
        if not follows:
            raise _Fault("it ends with a backslash")
        if follows == "Q":
            self.at = self.text.index("\\E", self.at) + 2
        elif follows in "pPxu0":
            spelled = SPELLED.match(self.text, self.at)
            if spelled is None:
                raise _Fault(f"\\{follows} is not followed by what it names")
            self.at = spelled.end()
        elif follows.isascii() and follows.isalnum() and follows not in ESCAPES:
            raise _Fault(f"\\{follows} means nothing")
        else:
            self.at += 2

    def _set(self) -> None:
        """Read a set of characters, and those within it; a ] that comes first is one of them."""
        self.at += 1
        self.at += self.text.startswith("^", self.at)
        first = True
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == "]" and not first:
                self.at += 1
                return
            first = False
            if sign == "[":
                self._set()
            elif sign == "\\":
                self._escape()
            else:
                self._character(sign)
        raise _Fault("a [ is not closed")

    def _character(self, sign: str) -> None:
        """Read a character of a set, or two with all between them."""
        last = self.text[self.at + 2 : self.at + 3]
        ranged = self.text.startswith("-", self.at + 1) and last not in ("", "[", "]")
        if not ranged or last == "\\":
            self.at += 1 + ranged
            return
        if last < sign:
            raise _Fault(f"{sign}-{last} is the wrong way round")
        self.at += 3

    def _group(self) -> None:
        self.at += 1
        if flags := FLAGS.match(self.text, self.at):
            self.at, self.repeatable = flags.end(), None
            return
        if self.text.startswith("?", self.at):
            group = GROUP.match(self.text, self.at)
            if group is None:
                raise _Fault(
                    f"({self.text[self.at : self.at + 3]} begins no group; a name is written (?<name>...)"
                )
            self.at = group.end()
        self.depth, self.repeatable = self.depth + 1, False

    def _repetition(self, sign: str) -> None:
        if self.repeatable is False and sign != "{":
            raise _Fault(f"{sign} repeats nothing")
        end = self.at + 1
        if sign == "{":
            count = COUNT.match(self.text, self.at)
            if count is None:
                raise _Fault("a { is followed by no count; a plain one is written \\{")
            if count[3] and int(count[3]) < int(count[1]):
                raise _Fault(f"{count[0]} is the wrong way round")
            end = count.end()
        self.at = end + (self.text[end : end + 1] in ("?", "+"))
        self.repeatable = None if sign == "{" else False


def fault(expression: str) -> str | None:
    """Say why Java refuses an expression; None where it takes it, or where that is not known."""
    if UNKNOWN.search(expression):
        return None
    try:
        _Reader(expression).whole()
    except _Fault as found:
        return str(found)
    return None
