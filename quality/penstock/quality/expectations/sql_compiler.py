"""Compiles expectations about a single row to Spark SQL that is true for an unexpected row.

The SQL gives the same verdict as Great Expectations on Spark, nulls and NaN included. Expectations that need
several rows, or that could stop a stream on a value of another type, are refused by name.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.core.names import find_nearest_name, list_names
from penstock.engine.definition.sql_type_names import base_type
from penstock.engine.plan.sources import Column, RowCheck
from penstock.ingestion.contracts.field_types.type_discovery import parse_spark_type
from penstock.quality.errors import NotCheckableInStreamError
from penstock.quality.expectations.arguments import (
    MULTI_ROW_ARGUMENTS,
    NUMERIC_TYPES,
    ColumnTypes,
    ExpectationArguments,
    sql_literal,
)
from penstock.quality.expectations.like_patterns import compile_like, compile_like_list, compile_not_like_list
from penstock.quality.expectations.multi_column import (
    compile_all_equal,
    compile_pair,
    compile_pair_in_set,
    compile_unique_within_record,
    equal_sql,
    greater_sql,
)
from penstock.quality.expectations.regex_validation import find_regex_fault
from penstock.quality.expectations.strftime import compile_strftime_format
from penstock.quality.expectations.suite import Expectation

MAX_EXACT_INTEGER = 2**53
"""The integer from which on a DOUBLE does not represent every integer."""


def compile_row_check(expectation: Expectation, columns: tuple[Column, ...]) -> RowCheck:
    """Compile an expectation to a check of single records.

    Raises NotCheckableInStreamError if that is impossible.
    """
    assert expectation.action is not None, "a topic suite has an action for each expectation"
    types: dict[str, str] = {}
    for column in columns:
        types |= dict(_iter_types(column.name, column.type))
    return RowCheck(expectation.name, compile_unexpected(expectation, types), expectation.action)


def _iter_types(path: str, spark_type: str) -> Iterator[tuple[str, str]]:
    """Yield the type of a column, and those of the members of a struct by their paths."""
    name = base_type(spark_type)
    yield path, name if name in ("DECIMAL", "STRUCT") else spark_type.upper()
    if name == "STRUCT":
        for member, member_type in parse_spark_type(spark_type).member_types.items():
            yield from _iter_types(f"{path}.{member}", member_type.spark_type)


def compile_unexpected(expectation: Expectation, columns: ColumnTypes) -> str:
    """Return SQL that is true for rows that do not meet the expectation, and false or null for other rows."""
    compiler = COMPILERS.get(expectation.type)
    if compiler is None:
        raise NotCheckableInStreamError(
            expectation.name,
            f"{expectation.type} needs several rows, or is unknown",
            describe_alternatives(expectation.type),
        )
    for argument, neutral_value in MULTI_ROW_ARGUMENTS.items():
        if expectation.kwargs.get(argument, neutral_value) != neutral_value:
            raise NotCheckableInStreamError(expectation.name, f"{argument} needs several rows", "Remove it")
    return compiler(ExpectationArguments(expectation, columns))


MIN_KIND_SIMILARITY = 0.95
"""Names of expectations have long parts in common, and those that are not supported here are correct."""


def describe_alternatives(kind: str) -> str:
    """Describe what can be checked in a stream, nearest match first."""
    nearest = find_nearest_name(kind, COMPILERS, min_similarity=MIN_KIND_SIMILARITY)
    advice = f"Did you mean {nearest}? If not, check" if nearest else "Check"
    return f"{advice} it on the table; in a stream, use one of {list_names(kind, COMPILERS)}"


def _compile_between(args: ExpectationArguments) -> str:
    column, column_type = args.take_column()
    least, most = args.take("min_value"), args.take("max_value")
    if column_type not in NUMERIC_TYPES:  # the library refuses a string as a bound, or parses it as a date
        raise args.refusal(f"{column} is {column_type}", "Use a numeric field")
    args.check_comparable(column_type, [least, most])
    for bound in (least, most):
        if column_type == "BIGINT" and isinstance(bound, int) and abs(bound) >= MAX_EXACT_INTEGER:
            fix = f"Use a bound below {MAX_EXACT_INTEGER}"
            raise args.refusal(f"{bound} is too large: the library compares as DOUBLE", fix)
    bounds_sql = _bounds_sql(args, column, least, most)
    args.refuse_remaining()
    return f"{column} IS NOT NULL AND NOT ({bounds_sql})"


def _compile_lengths_between(args: ExpectationArguments) -> str:
    column, least, most = args.take_text_column(), args.take("min_value"), args.take("max_value")
    for name, bound in (("min_value", least), ("max_value", most)):
        if bound is not None:
            _check_length(args, name, bound)
    bounds_sql = _bounds_sql(args, f"length({column})", least, most)
    args.refuse_remaining()
    return f"{column} IS NOT NULL AND NOT ({bounds_sql})"


def _bounds_sql(args: ExpectationArguments, value: str, least: Any, most: Any) -> str:
    strict_least, strict_most = args.take_flag("strict_min"), args.take_flag("strict_max")
    bounds = []
    if least is not None:
        bounds.append(f"{value} {'>' if strict_least else '>='} {sql_literal(least)}")
    if most is not None:
        bounds.append(f"{value} {'<' if strict_most else '<='} {sql_literal(most)}")
    if not bounds:
        raise args.refusal("min_value and max_value are both missing", "Set one of them, or both")
    if least is not None and most is not None and least > most:
        raise args.refusal(f"min_value {least} is above max_value {most}", "Swap them")
    return " AND ".join(bounds)


def _compile_length_equals(args: ExpectationArguments) -> str:
    column, length = args.take_text_column(), args.take("value")
    args.refuse_remaining()
    _check_length(args, "value", length)
    return f"{column} IS NOT NULL AND NOT (length({column}) = {sql_literal(length)})"


def _check_length(args: ExpectationArguments, name: str, length: Any) -> None:
    """Refuse a length that is not an integer; the library would truncate a fraction and parse a string."""
    if isinstance(length, bool) or not isinstance(length, int) or abs(length) >= MAX_EXACT_INTEGER:
        raise args.refusal(f"{name} is {length!r}", "Use an integer")


def _compile_in_set(*, negated: bool) -> Callable[[ExpectationArguments], str]:
    def compiled(args: ExpectationArguments) -> str:
        column, column_type = args.take_column()
        values = args.take("value_set")
        args.refuse_remaining()
        if not isinstance(values, list) or not values or None in values:
            raise args.refusal(f"value_set is {values!r}", "Use a list of values without null")
        args.check_comparable(column_type, values)
        in_sql = f"{column} IN ({', '.join(map(sql_literal, values))})"
        return f"{column} IS NOT NULL AND {in_sql if negated else f'NOT ({in_sql})'}"

    return compiled


def _compile_null(*, expected: bool) -> Callable[[ExpectationArguments], str]:
    def compiled(args: ExpectationArguments) -> str:
        column, _ = args.take_column()
        args.refuse_remaining()
        return f"{column} IS {'NOT ' if expected else ''}NULL"

    return compiled


def _compile_regex(*, negated: bool) -> Callable[[ExpectationArguments], str]:
    def compiled(args: ExpectationArguments) -> str:
        column, regex = args.take_text_column(), args.take("regex")
        args.refuse_remaining()
        match_sql = _rlike_sql(args, column, regex)
        return f"{column} IS NOT NULL AND {match_sql if negated else f'NOT ({match_sql})'}"

    return compiled


def _compile_regex_list(args: ExpectationArguments) -> str:
    column, regexes, match_on = (
        args.take_text_column(),
        args.take_texts("regex_list"),
        args.take("match_on", "any"),
    )
    args.refuse_remaining()
    if match_on not in ("any", "all"):
        raise args.refusal(f"match_on is {match_on!r}", "Write any or all")
    match_conditions = [_rlike_sql(args, column, regex) for regex in regexes]
    if match_on == "any":
        match_conditions = [_rlike_sql(args, column, "|".join(regexes))]
    return f"{column} IS NOT NULL AND NOT ({' AND '.join(match_conditions)})"


def _compile_not_regex_list(args: ExpectationArguments) -> str:
    column, regexes = args.take_text_column(), args.take_texts("regex_list")
    args.refuse_remaining()
    return f"{column} IS NOT NULL AND ({' OR '.join(_rlike_sql(args, column, regex) for regex in regexes)})"


def _rlike_sql(args: ExpectationArguments, column: str, regex: Any) -> str:
    if not isinstance(regex, str):
        raise args.refusal(f"the regular expression is {regex!r}", "Use a string")
    if regex_fault := find_regex_fault(regex):
        raise args.refusal(
            f"the regular expression {regex!r} is invalid: {regex_fault}", "Fix it; Spark uses Java's syntax"
        )
    return f"{column} RLIKE {sql_literal(regex)}"


COMPILERS: Mapping[str, Callable[[ExpectationArguments], str]] = {
    "expect_column_values_to_be_between": _compile_between,
    "expect_column_value_lengths_to_be_between": _compile_lengths_between,
    "expect_column_value_lengths_to_equal": _compile_length_equals,
    "expect_column_values_to_be_in_set": _compile_in_set(negated=False),
    "expect_column_values_to_not_be_in_set": _compile_in_set(negated=True),
    "expect_column_values_to_be_null": _compile_null(expected=True),
    "expect_column_values_to_not_be_null": _compile_null(expected=False),
    "expect_column_values_to_match_regex": _compile_regex(negated=False),
    "expect_column_values_to_not_match_regex": _compile_regex(negated=True),
    "expect_column_values_to_match_regex_list": _compile_regex_list,
    "expect_column_values_to_not_match_regex_list": _compile_not_regex_list,
    "expect_column_values_to_match_strftime_format": compile_strftime_format,
    "expect_column_values_to_match_like_pattern": compile_like(negated=False),
    "expect_column_values_to_not_match_like_pattern": compile_like(negated=True),
    "expect_column_values_to_match_like_pattern_list": compile_like_list,
    "expect_column_values_to_not_match_like_pattern_list": compile_not_like_list,
    "expect_column_pair_values_a_to_be_greater_than_b": compile_pair(greater_sql),
    "expect_column_pair_values_to_be_equal": compile_pair(equal_sql),
    "expect_column_pair_values_to_be_in_set": compile_pair_in_set,
    "expect_select_column_values_to_be_unique_within_record": compile_unique_within_record,
    "expect_multicolumn_values_to_be_equal": compile_all_equal,
}
"""The compilers of expectations about a single row, by the names of Great Expectations."""
