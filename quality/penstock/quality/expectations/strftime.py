"""Compiles `strptime` formats to Spark SQL, with the same verdict as Python.

A format becomes the regular expression that `strptime` builds, which must match the whole text. Calendar rules
are added: no February 30, no year 0, no second 60.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache

from penstock.quality.expectations.arguments import ExpectationArguments, sql_literal

MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def compile_strftime_format(args: ExpectationArguments) -> str:
    """Compile an expectation that texts match a date format."""
    column, date_format = args.take_text_column(), args.take("strftime_format")
    args.refuse_remaining()
    if not isinstance(date_format, str):
        raise args.refusal(f"strftime_format is {date_format!r}", "Give a string such as '%Y-%m-%d'")
    parts = _split_format(args, date_format)
    regex = "(?iu)^(?:" + "".join(_part_regex(part) for part in parts) + ")"
    fields = [part[1] for part in parts if part.startswith("%") and part != "%%"]
    is_whole_match = f"length(regexp_extract({column}, {sql_literal(regex)}, 0)) = length({column})"
    group_sql = {
        name: f"regexp_extract({column}, {sql_literal(regex)}, {number})"
        for number, name in enumerate(fields, 1)
    }
    conditions = [f"{column} RLIKE {sql_literal(regex)}", is_whole_match, *_calendar_conditions(group_sql)]
    # CASE evaluates in order, so a guard runs only if the groups that it reads exist.
    guards = " ".join(f"WHEN NOT coalesce({condition}, false) THEN false" for condition in conditions)
    return f"{column} IS NOT NULL AND NOT (CASE {guards} ELSE true END)"


def _split_format(args: ExpectationArguments, date_format: str) -> list[str]:
    """Split a format into directives and single characters; consecutive spaces become one."""
    parts: list[str] = []
    characters = iter(date_format)
    for character in characters:
        part = character + next(characters, "") if character == "%" else character
        if character == "%" and part != "%%" and part[1:] not in STRPTIME_DIRECTIVES:
            known_directives = ", ".join("%" + name for name in STRPTIME_DIRECTIVES)
            fix = f"In a stream, use {known_directives}; check other formats on the table"
            raise args.refusal(f"{part} in {date_format!r} is not supported in a stream", fix)
        if character.isspace() and parts and parts[-1] == " ":
            continue
        parts.append(" " if character.isspace() else part)
    fields = [part for part in parts if part.startswith("%") and part != "%%"]
    if not fields:
        raise args.refusal(f"{date_format!r} has no directive", "Add a directive such as %Y")
    for exclusive in (*([name] for name in fields), ["%Y", "%y"], ["%m", "%b", "%B"], ["%a", "%A"]):
        if sum(name in exclusive for name in fields) > 1:
            raise args.refusal(
                f"{date_format!r} has {' or '.join(exclusive)} more than once", "Use each field once"
            )
    return parts


def _part_regex(part: str) -> str:
    if part == " ":
        return f"{_character_class(str.isspace)}+"
    if part.startswith("%") and part != "%%":
        return f"({STRPTIME_DIRECTIVES[part[1]]()})"
    return f"\\x{{{ord(part[-1]):x}}}" if not part[-1].isalpha() else part[-1]


def _calendar_conditions(group_sql: Mapping[str, str]) -> list[str]:
    """Return the calendar rules for the fields of a complete text."""
    conditions = []
    if "S" in group_sql:
        conditions.append(f"{_number_sql(group_sql['S'])} < 60")
    if "Y" in group_sql:
        conditions.append(f"{_number_sql(group_sql['Y'])} > 0")
    if "d" in group_sql:
        conditions.append(f"{_number_sql(group_sql['d'])} <= {_days_of_month_sql(group_sql)}")
    return conditions


def _days_of_month_sql(group_sql: Mapping[str, str]) -> str:
    month, year = _month_sql(group_sql), _year_sql(group_sql)
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    return (
        f"CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31"
        f" WHEN {leap} THEN 29 ELSE 28 END"
    )


def _month_sql(group_sql: Mapping[str, str]) -> str:
    for name in ("b", "B"):
        if name in group_sql:
            names = ", ".join(sql_literal(month[:3]) for month in MONTH_NAMES)
            return f"array_position(array({names}), lower(substr({group_sql[name]}, 1, 3)))"
    return _number_sql(group_sql["m"]) if "m" in group_sql else "1"


def _year_sql(group_sql: Mapping[str, str]) -> str:
    """Return SQL for the year. Without a year, Python assumes 1900, which is not a leap year."""
    if "y" in group_sql:
        short_year = _number_sql(group_sql["y"])
        return f"({short_year} + CASE WHEN {short_year} <= 68 THEN 2000 ELSE 1900 END)"
    return _number_sql(group_sql["Y"]) if "Y" in group_sql else "1900"


def _number_sql(text_sql: str) -> str:
    """Return SQL for the number that digits of any script form, as Python reads them."""
    other_digits = "".join(digit for digit in _unicode_digits() if not digit.isascii())
    ascii_digits = "".join(str(int(digit)) for digit in other_digits)
    return f"try_cast(translate(trim({text_sql}), {sql_literal(other_digits)}, {sql_literal(ascii_digits)}) AS INT)"


@cache
def _unicode_digits() -> str:
    return "".join(chr(code) for code in range(sys.maxunicode + 1) if chr(code).isdecimal())


@cache
def _character_class(is_member: Callable[[str], bool]) -> str:
    """Return a Java character class for the characters that Python accepts; Java's own classes are smaller."""
    codes = [code for code in range(sys.maxunicode + 1) if is_member(chr(code))]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges) + "]"


def _digit_class() -> str:
    return _character_class(str.isdecimal)


def _name_alternatives(names: tuple[str, ...]) -> Callable[[], str]:
    """Return a regular expression for names, longest first. Only ASCII letters ignore case."""
    return lambda: "(?-u:" + "|".join(sorted(names, key=len, reverse=True)) + ")"


STRPTIME_DIRECTIVES: Mapping[str, Callable[[], str]] = {
    "Y": lambda: _digit_class() * 4,
    "y": lambda: _digit_class() * 2,
    "m": lambda: "1[0-2]|0[1-9]|[1-9]",
    "d": lambda: f"3[0-1]|[1-2]{_digit_class()}|0[1-9]|[1-9]| [1-9]",
    "H": lambda: f"2[0-3]|[0-1]{_digit_class()}|{_digit_class()}",
    "I": lambda: "1[0-2]|0[1-9]|[1-9]",
    "M": lambda: f"[0-5]{_digit_class()}|{_digit_class()}",
    "S": lambda: f"6[0-1]|[0-5]{_digit_class()}|{_digit_class()}",
    "f": lambda: "[0-9]{1,6}",
    "p": _name_alternatives(("am", "pm")),
    "b": _name_alternatives(tuple(month[:3] for month in MONTH_NAMES)),
    "B": _name_alternatives(MONTH_NAMES),
    "a": _name_alternatives(tuple(day[:3] for day in DAY_NAMES)),
    "A": _name_alternatives(DAY_NAMES),
}
"""The regular expression of each `strptime` directive. Zones, weeks and days of the year are not supported."""
