"""Expectations about a single row as Spark SQL: true for a row that Great Expectations calls unexpected.

The SQL says what Great Expectations says on Spark of the same row, nulls and NaN included. What needs more than a
row, or would stop a stream over a value of another type, is refused by name.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from penstock.pipelines.plan.source import Column, RowCheck
from penstock.quality.errors import NotInStreamError
from penstock.quality.expectations.arguments import BEYOND_ROWS, NUMBERS, Arguments, Columns, literal
from penstock.quality.expectations.dates import strftime_format
from penstock.quality.expectations.expressions import fault
from penstock.quality.expectations.like import like, like_list, not_like_list
from penstock.quality.expectations.several import (
    all_equal,
    equal,
    greater,
    pair,
    pair_in_set,
    unique_within_record,
)
from penstock.quality.expectations.suite import Expectation

EXACT = 2**53
"""The whole number from which on a DOUBLE does not tell a number from the next."""


def row_check(one: Expectation, columns: tuple[Column, ...]) -> RowCheck:
    """Return an expectation as a check of single records; NotInStreamError where it cannot be one."""
    assert one.action is not None, "a suite of a topic has an action for each"
    types = {column.name: column.type.upper() for column in columns}
    return RowCheck(one.name, broken_when(one, types), one.action)


def broken_when(one: Expectation, columns: Columns) -> str:
    """Return the SQL that is true for a row which does not meet the expectation, and false or null for others."""
    compiler = COMPILED.get(one.type)
    if compiler is None:
        raise NotInStreamError(
            one.name, f"{one.type} needs more than one row, or is not known here", known(one.type)
        )
    for argument, nothing in BEYOND_ROWS.items():
        if one.kwargs.get(argument, nothing) != nothing:
            raise NotInStreamError(one.name, f"{argument} speaks of many rows", "Leave it out")
    return compiler(Arguments(one, columns))


def known(kind: str) -> str:
    """Say what can be checked in a stream, and first what is written almost so."""
    near = get_close_matches(kind, COMPILED, 1, 0.95)
    meant = f"Write {near[0]} if that is meant; else check" if near else "Check"
    return f"{meant} it at rest; in a stream there are {', '.join(sorted(COMPILED))}"


def _between(args: Arguments) -> str:
    column, kind = args.column()
    least, most = args.take("min_value"), args.take("max_value")
    if kind not in NUMBERS:  # a text for a bound the library itself refuses, or takes for a date
        raise args.refused(f"{column} is {kind}", "Name a field of numbers")
    args.comparable(kind, [least, most])
    for bound in (least, most):
        if kind == "BIGINT" and isinstance(bound, int) and abs(bound) >= EXACT:
            fix = f"Give a bound below {EXACT}"
            raise args.refused(f"{bound} is more than the library tells apart: it compares as DOUBLE", fix)
    inside = _bounds(args, column, least, most)
    args.done()
    return f"{column} IS NOT NULL AND NOT ({inside})"


def _lengths_between(args: Arguments) -> str:
    column, least, most = args.text(), args.take("min_value"), args.take("max_value")
    for name, bound in (("min_value", least), ("max_value", most)):
        if bound is not None:
            _whole(args, name, bound)
    inside = _bounds(args, f"length({column})", least, most)
    args.done()
    return f"{column} IS NOT NULL AND NOT ({inside})"


def _bounds(args: Arguments, value: str, least: Any, most: Any) -> str:
    strict_least, strict_most = args.said("strict_min"), args.said("strict_max")
    bounds = []
    if least is not None:
        bounds.append(f"{value} {'>' if strict_least else '>='} {literal(least)}")
    if most is not None:
        bounds.append(f"{value} {'<' if strict_most else '<='} {literal(most)}")
    if not bounds:
        raise args.refused("neither min_value nor max_value is given", "Give one of them, or both")
    if least is not None and most is not None and least > most:
        raise args.refused(f"min_value {least} is above max_value {most}", "Give them the other way round")
    return " AND ".join(bounds)


def _length_equals(args: Arguments) -> str:
    column, length = args.text(), args.take("value")
    args.done()
    _whole(args, "value", length)
    return f"{column} IS NOT NULL AND NOT (length({column}) = {literal(length)})"


def _whole(args: Arguments, name: str, length: Any) -> None:
    """Refuse what is no length: of a broken number the library takes the whole part, of a text its number."""
    if isinstance(length, bool) or not isinstance(length, int) or abs(length) >= EXACT:
        raise args.refused(f"{name} is {length!r}", "Give a whole number")


def _in_set(*, negated: bool) -> Callable[[Arguments], str]:
    def compiled(args: Arguments) -> str:
        column, kind = args.column()
        values = args.take("value_set")
        args.done()
        if not isinstance(values, list) or not values or None in values:
            raise args.refused(f"value_set is {values!r}", "Give a list of values, none of them null")
        args.comparable(kind, values)
        inside = f"{column} IN ({', '.join(map(literal, values))})"
        return f"{column} IS NOT NULL AND {inside if negated else f'NOT ({inside})'}"

    return compiled


def _null(*, expected: bool) -> Callable[[Arguments], str]:
    def compiled(args: Arguments) -> str:
        column, _ = args.column()
        args.done()
        return f"{column} IS {'NOT ' if expected else ''}NULL"

    return compiled


def _regex(*, negated: bool) -> Callable[[Arguments], str]:
    def compiled(args: Arguments) -> str:
        column, regex = args.text(), args.take("regex")
        args.done()
        matches = _matches(args, column, regex)
        return f"{column} IS NOT NULL AND {matches if negated else f'NOT ({matches})'}"

    return compiled


def _regex_list(args: Arguments) -> str:
    column, regexes, match_on = args.text(), args.texts("regex_list"), args.take("match_on", "any")
    args.done()
    if match_on not in ("any", "all"):
        raise args.refused(f"match_on is {match_on!r}", "Write any or all")
    found = [_matches(args, column, regex) for regex in regexes]
    if match_on == "any":
        found = [_matches(args, column, "|".join(regexes))]
    return f"{column} IS NOT NULL AND NOT ({' AND '.join(found)})"


def _not_regex_list(args: Arguments) -> str:
    column, regexes = args.text(), args.texts("regex_list")
    args.done()
    return f"{column} IS NOT NULL AND ({' OR '.join(_matches(args, column, regex) for regex in regexes)})"


def _matches(args: Arguments, column: str, regex: Any) -> str:
    if not isinstance(regex, str):
        raise args.refused(f"the expression is {regex!r}", "Give a text")
    if found := fault(regex):
        raise args.refused(
            f"the expression {regex!r} is none: {found}", "Mend it; it is read as Java reads it"
        )
    return f"{column} RLIKE {literal(regex)}"


COMPILED: Mapping[str, Callable[[Arguments], str]] = {
    "expect_column_values_to_be_between": _between,
    "expect_column_value_lengths_to_be_between": _lengths_between,
    "expect_column_value_lengths_to_equal": _length_equals,
    "expect_column_values_to_be_in_set": _in_set(negated=False),
    "expect_column_values_to_not_be_in_set": _in_set(negated=True),
    "expect_column_values_to_be_null": _null(expected=True),
    "expect_column_values_to_not_be_null": _null(expected=False),
    "expect_column_values_to_match_regex": _regex(negated=False),
    "expect_column_values_to_not_match_regex": _regex(negated=True),
    "expect_column_values_to_match_regex_list": _regex_list,
    "expect_column_values_to_not_match_regex_list": _not_regex_list,
    "expect_column_values_to_match_strftime_format": strftime_format,
    "expect_column_values_to_match_like_pattern": like(negated=False),
    "expect_column_values_to_not_match_like_pattern": like(negated=True),
    "expect_column_values_to_match_like_pattern_list": like_list,
    "expect_column_values_to_not_match_like_pattern_list": not_like_list,
    "expect_column_pair_values_a_to_be_greater_than_b": pair(greater),
    "expect_column_pair_values_to_be_equal": pair(equal),
    "expect_column_pair_values_to_be_in_set": pair_in_set,
    "expect_select_column_values_to_be_unique_within_record": unique_within_record,
    "expect_multicolumn_values_to_be_equal": all_equal,
}
"""What can be said of a single row, by the name that Great Expectations has for it."""
