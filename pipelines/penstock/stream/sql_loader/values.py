"""Values in SQL: durations, numbers, texts, names, lists, columns with types, calls, and any other expression."""

from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.token_groups import find_closing, is_in_parentheses, split_commas
from penstock.stream.sql_loader.tokens import SqlFile, SqlToken, Tokens

Entry = TypeVar("Entry")
Constant: TypeAlias = PlacedText | int | float | bool | None
CONSTANT_WORDS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}


@dataclass(frozen=True)
class SqlName:
    """A column, or a path to a member of a struct; where a keyword is expected, a keyword without arguments."""

    text: PlacedText


@dataclass(frozen=True)
class SqlExpression:
    """An expression as the user wrote it."""

    text: PlacedText


@dataclass(frozen=True)
class SqlCall:
    """A call with positional and named arguments: `TOP(3, tag, by => uses)`."""

    name: PlacedText
    positional: "tuple[SqlValue, ...]" = ()
    named: "dict[PlacedText, SqlValue]" = field(default_factory=dict)


SqlValue: TypeAlias = (
    "Constant | SqlName | SqlExpression | SqlCall | dict[PlacedText, PlacedText] | list[SqlValue]"
)


def parse_value(file: SqlFile, tokens: Tokens) -> SqlValue:
    """Return the value of all these tokens, at least one."""
    first = tokens[0]
    if len(tokens) == 1 and first.upper_word in CONSTANT_WORDS:
        return CONSTANT_WORDS[first.upper_word]
    if len(tokens) == 1 and first.kind == "text":
        return file.place(first.text, tokens)
    if (number := parse_number(tokens)) is not None:
        return number
    if (duration := parse_duration(file, tokens)) is not None:
        return duration
    if (name := parse_name(file, tokens)) is not None:
        return SqlName(name)
    if is_call(tokens):
        return parse_call(file, tokens)
    if is_in_parentheses(tokens):
        return parse_parentheses(file, tokens)
    return SqlExpression(file.place(file.slice(tokens), tokens))


def parse_number(tokens: Tokens) -> int | float | None:
    """Return a number with an optional sign."""
    sign = -1 if tokens[0].is_symbol("-") else 1
    digits = tokens[1:] if sign < 0 else tokens
    if len(digits) != 1 or digits[0].kind != "number":
        return None
    text = digits[0].text
    return sign * (int(text) if text.isdigit() else float(text))


def parse_duration(file: SqlFile, tokens: Tokens) -> PlacedText | None:
    """Return the text of `INTERVAL '1' MINUTE`, `INTERVAL '10 minutes'` or `1 HOUR 30 MINUTES`."""
    parts = tokens[1:] if tokens[0].upper_word == "INTERVAL" else tokens
    kinds = [token.kind for token in parts]
    is_interval = len(parts) < len(tokens) and kinds in (["text"], ["text", "word"])
    has_units = kinds == ["number", "word"] * (len(kinds) // 2) and len(kinds) > 0
    if not is_interval and not has_units:
        return None
    return file.place(" ".join(token.text for token in parts).lower(), tokens)


def parse_name(file: SqlFile, tokens: Tokens) -> PlacedText | None:
    """Return a name or a path such as `address.zip`; None if the tokens are something else."""
    is_path = len(tokens) % 2 == 1 and all(
        token.is_symbol(".") if number % 2 else token.is_identifier for number, token in enumerate(tokens)
    )
    return file.place("".join(token.text for token in tokens), tokens) if is_path else None


def is_call(tokens: Tokens) -> bool:
    """Whether the tokens are one call."""
    return len(tokens) > 2 and tokens[0].is_identifier and is_in_parentheses(tokens[1:])


def parse_call(file: SqlFile, tokens: Tokens) -> SqlCall:
    """Return a call. Arguments by name are written `name => value`."""
    name = file.place(tokens[0].text, tokens[:1])
    return parse_arguments(file, name, tokens[2 : find_closing(tokens, 1)], tokens[0])


def parse_arguments(file: SqlFile, name: PlacedText, tokens: Tokens, after: SqlToken) -> SqlCall:
    """Return the call of a function with the arguments in these tokens."""
    positional: list[SqlValue] = []
    named: dict[PlacedText, SqlValue] = {}
    for argument in split_commas(file, tokens, str(name), after) if tokens else ():
        is_named = len(argument) > 1 and argument[0].is_identifier and argument[1].is_symbol("=>")
        if not is_named and named:
            fix = "Write arguments by position first, then those by name"
            raise file.problem(str(name), "an argument by position after one by name", fix, argument[0])
        if not is_named:
            positional.append(parse_value(file, argument))
        elif len(argument) == 2:
            raise file.problem(
                str(name), f"{argument[0].text} has no value", "Write it after =>", argument[0]
            )
        else:
            argument_name = file.place(argument[0].text.lower(), argument[:1])
            put_once(file, named, argument_name, parse_value(file, argument[2:]), str(name))
    return SqlCall(name, tuple(positional), named)


def parse_parentheses(file: SqlFile, tokens: Tokens) -> SqlValue:
    """Return columns with types, `(word STRING, at TIMESTAMP)`, or a list of values."""
    parts = split_commas(file, tokens[1:-1], "SQL", tokens[0])
    if all(len(part) > 1 and part[0].is_identifier and part[1].kind in ("word", "text") for part in parts):
        columns: dict[PlacedText, PlacedText] = {}
        for part in parts:
            put_once(file, columns, file.place(part[0].text, part[:1]), parse_type(file, part[1:]), "SQL")
        return columns
    return [parse_value(file, part) for part in parts]


def put_once(
    file: SqlFile, entries: dict[PlacedText, Entry], name: PlacedText, value: Entry, part: str
) -> None:
    """Add an entry. Raises DefinitionError for a name that is there already."""
    if name in entries:
        raise file.problem(part, f"{name!s} is written twice", "Remove one of them, or rename it", name)
    entries[name] = value


def parse_type(file: SqlFile, tokens: Tokens) -> PlacedText:
    """Return a type of Spark SQL. One with commas is written as a text: `'MAP<STRING, BIGINT>'`."""
    is_text = len(tokens) == 1 and tokens[0].kind == "text"
    return file.place(tokens[0].text if is_text else file.slice(tokens), tokens)
