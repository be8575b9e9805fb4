"""Parses the text of Protobuf schemas (`.proto`), as far as messages need it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.ingestion.errors import ContractError

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')"
    r"|(?P<word>[A-Za-z_.][\w.]*|-?\d[\w.+-]*)|(?P<mark>[{}\[\]()<>;=,:+-])|(?P<space>\s+)",
    re.DOTALL,
)
_LABELS = ("optional", "repeated", "required")


@dataclass
class ProtoField:
    """A field of a message. `type_name` is a scalar, a message or an enum; a map also has a `key_type`."""

    name: str
    number: int
    type_name: str
    label: str = ""
    key_type: str = ""
    oneof: str = ""
    comment: str = ""
    """The comment after the field, in the same line."""

    @property
    def declaration(self) -> str:
        """The type as it is written, with its label."""
        if self.key_type:
            return f"map<{self.key_type}, {self.type_name}>"
        return f"{self.label} {self.type_name}".strip()


@dataclass
class ProtoMessage:
    """A message with the messages and enums inside of it."""

    name: str
    fields: list[ProtoField] = field(default_factory=list)
    messages: "list[ProtoMessage]" = field(default_factory=list)
    enums: "list[ProtoEnum]" = field(default_factory=list)
    reserved: set[int] = field(default_factory=set)


@dataclass
class ProtoEnum:
    """An enum: its symbols with their numbers."""

    name: str
    symbols: list[tuple[str, int]] = field(default_factory=list)
    has_aliases: bool = False


@dataclass
class ProtoFile:
    """A schema."""

    syntax: str = "proto2"
    package: str = ""
    imports: list[str] = field(default_factory=list)
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)


def parse_proto(text: str) -> ProtoFile:
    """Return the parts of a schema; raise ContractError for what is no Protobuf."""
    return _ProtoParser(text).parse_file()


class _ProtoParser:
    """Reads tokens one after the other. Options, services and extensions are skipped."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_split_tokens(text))
        self._position = 0

    def parse_file(self) -> ProtoFile:
        parsed = ProtoFile()
        while (word := self._next()) != "":
            match word:
                case "syntax":
                    self._expect("=")
                    parsed.syntax = self._next().strip("\"'")
                    self._expect(";")
                case "package":
                    parsed.package = self._next()
                    self._expect(";")
                case "import":
                    name = self._next()
                    parsed.imports.append((self._next() if name in ("public", "weak") else name).strip("\"'"))
                    self._expect(";")
                case "message":
                    parsed.messages.append(self._parse_message())
                case "enum":
                    parsed.enums.append(self._parse_enum())
                case ";":
                    pass
                case _:
                    self._skip_statement()
        return parsed

    def _parse_message(self) -> ProtoMessage:
        message = ProtoMessage(self._next())
        self._expect("{")
        while (word := self._next()) != "}":
            match word:
                case "message":
                    message.messages.append(self._parse_message())
                case "enum":
                    message.enums.append(self._parse_enum())
                case "oneof":
                    self._parse_oneof(message)
                case "reserved":
                    message.reserved |= self._parse_reserved()
                case "option" | "extensions" | "extend" | "group":
                    self._skip_statement()
                case ";":
                    pass
                case _:
                    message.fields.append(self._parse_field(word))
        return message

    def _parse_oneof(self, message: ProtoMessage) -> None:
        name = self._next()
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                self._skip_statement()
            elif word != ";":
                message.fields.append(self._parse_field(word, name))

    def _parse_field(self, word: str, oneof: str = "") -> ProtoField:
        label = ""
        if word in _LABELS:
            label, word = word, self._next()
        key_type = ""
        if word == "map":
            self._expect("<")
            key_type = self._next()
            self._expect(",")
            word = self._next()
            self._expect(">")
        name = self._next()
        self._expect("=")
        parsed = ProtoField(name, _to_number(self._next()), word, label, key_type, oneof)
        if self._peek() == "[":
            self._skip_until("]")
        self._expect(";")
        parsed.comment = self._take_comment()
        return parsed

    def _parse_enum(self) -> ProtoEnum:
        enum = ProtoEnum(self._next())
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                enum.has_aliases |= self._peek() == "allow_alias"
                self._skip_statement()
            elif word == "reserved":
                self._skip_statement()
            elif word != ";":
                self._expect("=")
                enum.symbols.append((word, _to_number(self._next())))
                if self._peek() == "[":
                    self._skip_until("]")
                self._expect(";")
        return enum

    def _parse_reserved(self) -> set[int]:
        numbers: set[int] = set()
        while (word := self._next()) != ";":
            if word.isdecimal():
                last = int(word)
                if self._peek() == "to":
                    self._next()
                    end = self._next()
                    # `to max` reserves everything: the numbers below are still free.
                    last = int(end) if end.isdecimal() else last
                numbers |= set(range(int(word), last + 1))
            elif word == "":
                raise ContractError("The Protobuf schema ends within 'reserved'. Register it whole.")
        return numbers

    def _skip_statement(self) -> None:
        """Skip up to the semicolon or the closing bracket that ends a statement."""
        while (word := self._next()) not in (";", ""):
            if word == "{":
                self._skip_until("}")
                return

    def _skip_until(self, end: str) -> None:
        opened = {"}": "{", "]": "["}[end]
        if self._peek() == opened:
            self._next()
        depth = 1
        while depth:
            word = self._next()
            if word == "":
                raise ContractError(f"The Protobuf schema lacks a '{end}'. Register it whole.")
            depth += (word == opened) - (word == end)

    def _peek(self) -> str:
        position = self._position
        word = self._next()
        self._position = position
        return word

    def _next(self) -> str:
        while self._position < len(self._tokens):
            kind, text = self._tokens[self._position]
            self._position += 1
            if kind not in ("comment", "space"):
                return text
        return ""

    def _take_comment(self) -> str:
        """Return the comment in the rest of the line."""
        for kind, text in self._tokens[self._position : self._position + 2]:
            if kind == "comment":
                return text.removeprefix("//").removeprefix("/*").removesuffix("*/").strip()
            if kind != "space" or "\n" in text:
                break
        return ""

    def _expect(self, expected: str) -> None:
        if (found := self._next()) != expected:
            raise ContractError(f"The Protobuf schema has {found!r} where '{expected}' belongs. Correct it.")


def _split_tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ContractError(
                f"The Protobuf schema has {text[position]!r}, which is no Protobuf. Correct it."
            )
        yield match.lastgroup, match.group()
        position = match.end()


def _to_number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ContractError(f"The Protobuf schema has {text!r} where a number belongs. Correct it.") from None
