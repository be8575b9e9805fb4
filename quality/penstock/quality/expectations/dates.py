"""Texts that Python's `strptime` reads by a format, said as SQL: that is how the library judges them.

A format becomes the regular expression that `strptime` makes of it, which must reach from the begin of a text to
its end, and what the calendar says besides: no thirtieth of February, no year nought, no second of sixty.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache

from penstock.quality.expectations.arguments import Arguments, literal

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def strftime_format(args: Arguments) -> str:
    """Compile an expectation that texts follow a format."""
    column, told = args.text(), args.take("strftime_format")
    args.done()
    if not isinstance(told, str):
        raise args.refused(f"strftime_format is {told!r}", "Give a text such as '%Y-%m-%d'")
    parts = _parts(args, told)
    regex = "(?iu)^(?:" + "".join(_pattern(part) for part in parts) + ")"
    fields = [part[1] for part in parts if part.startswith("%") and part != "%%"]
    whole = f"length(regexp_extract({column}, {literal(regex)}, 0)) = length({column})"
    found = {
        name: f"regexp_extract({column}, {literal(regex)}, {number})" for number, name in enumerate(fields, 1)
    }
    conditions = [f"{column} RLIKE {literal(regex)}", whole, *_calendar(found)]
    # In the order of a CASE: what a text lacks is not asked of it.
    guards = " ".join(f"WHEN NOT coalesce({one}, false) THEN false" for one in conditions)
    return f"{column} IS NOT NULL AND NOT (CASE {guards} ELSE true END)"


def _parts(args: Arguments, told: str) -> list[str]:
    """Directives and what is between them, one character each; every run of spaces is one space."""
    parts: list[str] = []
    rest = iter(told)
    for sign in rest:
        part = sign + next(rest, "") if sign == "%" else sign
        if sign == "%" and part != "%%" and part[1:] not in DIRECTIVES:
            fix = (
                f"In a stream there are {', '.join('%' + name for name in DIRECTIVES)}; check others at rest"
            )
            raise args.refused(f"{part} in {told!r} is not known here", fix)
        if sign.isspace() and parts and parts[-1] == " ":
            continue
        parts.append(" " if sign.isspace() else part)
    fields = [part for part in parts if part.startswith("%") and part != "%%"]
    if not fields:
        raise args.refused(f"{told!r} has no directive", "Write one such as %Y")
    for clashing in (*([name] for name in fields), ["%Y", "%y"], ["%m", "%b", "%B"], ["%a", "%A"]):
        if sum(name in clashing for name in fields) > 1:
            raise args.refused(f"{told!r} says {' or '.join(clashing)} more than once", "Say each field once")
    return parts


def _pattern(part: str) -> str:
    if part == " ":
        return f"{_class(str.isspace)}+"
    if part.startswith("%") and part != "%%":
        return f"({DIRECTIVES[part[1]]()})"
    return f"\\x{{{ord(part[-1]):x}}}" if not part[-1].isalpha() else part[-1]


def _calendar(found: Mapping[str, str]) -> list[str]:
    """What must hold of the fields of a text that has them all."""
    conditions = []
    if "S" in found:
        conditions.append(f"{_number(found['S'])} < 60")
    if "Y" in found:
        conditions.append(f"{_number(found['Y'])} > 0")
    if "d" in found:
        conditions.append(f"{_number(found['d'])} <= {_days_of_month(found)}")
    return conditions


def _days_of_month(found: Mapping[str, str]) -> str:
    month, year = _month(found), _year(found)
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    return (
        f"CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31"
        f" WHEN {leap} THEN 29 ELSE 28 END"
    )


def _month(found: Mapping[str, str]) -> str:
    for name in ("b", "B"):
        if name in found:
            names = ", ".join(literal(month[:3]) for month in MONTHS)
            return f"array_position(array({names}), lower(substr({found[name]}, 1, 3)))"
    return _number(found["m"]) if "m" in found else "1"


def _year(found: Mapping[str, str]) -> str:
    """The year; without one Python takes 1900, which is no leap year."""
    if "y" in found:
        short = _number(found["y"])
        return f"({short} + CASE WHEN {short} <= 68 THEN 2000 ELSE 1900 END)"
    return _number(found["Y"]) if "Y" in found else "1900"


def _number(text: str) -> str:
    """SQL for the number that digits of any script say, as Python reads them."""
    others = "".join(sign for sign in _digits() if not sign.isascii())
    said = "".join(str(int(sign)) for sign in others)
    return f"try_cast(translate(trim({text}), {literal(others)}, {literal(said)}) AS INT)"


@cache
def _digits() -> str:
    return "".join(chr(code) for code in range(sys.maxunicode + 1) if chr(code).isdecimal())


@cache
def _class(holds: Callable[[str], bool]) -> str:
    """The characters for which Python says so, as Java's expressions name them; its own know fewer."""
    codes = [code for code in range(sys.maxunicode + 1) if holds(chr(code))]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges) + "]"


def _digit() -> str:
    return _class(str.isdecimal)


def _one_of(names: tuple[str, ...]) -> Callable[[], str]:
    """Names, of which only ASCII letters have another case: the longer first."""
    return lambda: "(?-u:" + "|".join(sorted(names, key=len, reverse=True)) + ")"


DIRECTIVES: Mapping[str, Callable[[], str]] = {
    "Y": lambda: _digit() * 4,
    "y": lambda: _digit() * 2,
    "m": lambda: "1[0-2]|0[1-9]|[1-9]",
    "d": lambda: f"3[0-1]|[1-2]{_digit()}|0[1-9]|[1-9]| [1-9]",
    "H": lambda: f"2[0-3]|[0-1]{_digit()}|{_digit()}",
    "I": lambda: "1[0-2]|0[1-9]|[1-9]",
    "M": lambda: f"[0-5]{_digit()}|{_digit()}",
    "S": lambda: f"6[0-1]|[0-5]{_digit()}|{_digit()}",
    "f": lambda: "[0-9]{1,6}",
    "p": _one_of(("am", "pm")),
    "b": _one_of(tuple(month[:3] for month in MONTHS)),
    "B": _one_of(MONTHS),
    "a": _one_of(tuple(day[:3] for day in DAYS)),
    "A": _one_of(DAYS),
}
"""What `strptime` looks for, by the letter of a directive. Zones, weeks and days of the year are not among them."""
