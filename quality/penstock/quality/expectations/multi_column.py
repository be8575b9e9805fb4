"""Compiles expectations about several columns of a row to Spark SQL."""

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

from penstock.quality.expectations.arguments import NUMERIC_TYPES, ExpectationArguments, sql_literal


def compile_pair(condition: Callable[[str, str, bool], str]) -> Callable[[ExpectationArguments], str]:
    """Compile a comparison of two columns."""

    def compiled(args: ExpectationArguments) -> str:
        (left, left_type), (right, right_type) = args.take_column("column_A"), args.take_column("column_B")
        or_equal = args.take_flag("or_equal")
        ignored_sql = _ignored_rows_sql(args, left, right)
        args.refuse_remaining()
        _check_same_type(args, [(left, left_type), (right, right_type)])
        return _exclude_ignored(ignored_sql, f"NOT ({condition(left, right, or_equal)})")

    return compiled


def greater_sql(left: str, right: str, or_equal: bool) -> str:
    """Return SQL that is true if the left column is greater, or with `or_equal` greater or equal."""
    return f"{left} >= {right} OR {left} <=> {right}" if or_equal else f"{left} > {right}"


def equal_sql(left: str, right: str, _or_equal: bool) -> str:
    """Return SQL that is true if both columns are equal or both are null."""
    return f"{left} <=> {right}"


def compile_pair_in_set(args: ExpectationArguments) -> str:
    """Compile an expectation that two columns have one of several pairs of values; null counts as a value."""
    (left, left_type), (right, right_type) = args.take_column("column_A"), args.take_column("column_B")
    pairs = args.take("value_pairs_set")
    ignored_sql = _ignored_rows_sql(args, left, right)
    args.refuse_remaining()
    if not isinstance(pairs, list) or not pairs or any(not _is_pair(value_pair) for value_pair in pairs):
        raise args.refusal(f"value_pairs_set is {pairs!r}", "Use a list of pairs of values")
    args.check_comparable(left_type, [first for first, _ in pairs])
    args.check_comparable(right_type, [second for _, second in pairs])
    in_sql = " OR ".join(
        f"({left} <=> {_literal_or_null(first)} AND {right} <=> {_literal_or_null(second)})"
        for first, second in pairs
    )
    return _exclude_ignored(ignored_sql, f"NOT ({in_sql})")


def compile_unique_within_record(args: ExpectationArguments) -> str:
    """Compile an expectation that no two columns of a row are equal or both null."""
    columns, ignored_sql = _take_columns(args)
    same_sql = " OR ".join(f"{left} <=> {right}" for left, right in combinations(columns, 2))
    return _exclude_ignored(ignored_sql, f"({same_sql})")


def compile_all_equal(args: ExpectationArguments) -> str:
    """Compile an expectation that several columns of a row are all equal or all null."""
    (first, *others), ignored_sql = _take_columns(args)
    # Compare each column with the first, as the library does: equality across number types is not transitive.
    same_sql = " AND ".join(f"{first} <=> {other_column}" for other_column in others)
    return _exclude_ignored(ignored_sql, f"NOT ({same_sql})")


def _take_columns(args: ExpectationArguments) -> tuple[list[str], str]:
    """Take a list of columns of comparable types, and return them with the SQL for ignored rows."""
    names = args.take("column_list")
    if not isinstance(names, list) or len(names) < 2:
        raise args.refusal(f"column_list is {names!r}", "Use a list of at least two columns")
    typed_columns = [args.resolve_column(name) for name in names]
    _check_same_type(args, typed_columns)
    nulls = [f"{column} IS NULL" for column, _ in typed_columns]
    match args.take("ignore_row_if", "all_values_are_missing"):
        case "all_values_are_missing":
            ignored_sql = " AND ".join(nulls)
        case "any_value_is_missing":
            ignored_sql = " OR ".join(nulls)
        case "never":
            ignored_sql = ""
        case unknown:
            fix = "Write all_values_are_missing, any_value_is_missing or never"
            raise args.refusal(f"ignore_row_if is {unknown!r}", fix)
    args.refuse_remaining()
    return [column for column, _ in typed_columns], ignored_sql


def _check_same_type(args: ExpectationArguments, columns: list[tuple[str, str]]) -> None:
    """Refuse columns of different types. Spark would cast text to a number and fail."""
    for (left, left_type), (right, right_type) in pairwise(columns):
        if left_type != right_type and not {left_type, right_type} <= NUMERIC_TYPES:
            raise args.refusal(
                f"{left} is {left_type} and {right} {right_type}", "Compare fields of the same type"
            )


def _ignored_rows_sql(args: ExpectationArguments, left: str, right: str) -> str:
    match args.take("ignore_row_if", "both_values_are_missing"):
        case "both_values_are_missing":
            return f"{left} IS NULL AND {right} IS NULL"
        case "either_value_is_missing":
            return f"{left} IS NULL OR {right} IS NULL"
        case "neither":
            return ""
        case unknown:
            raise args.refusal(
                f"ignore_row_if is {unknown!r}",
                "Write both_values_are_missing, either_value_is_missing or neither",
            )


def _exclude_ignored(ignored_sql: str, unexpected_sql: str) -> str:
    return f"NOT ({ignored_sql}) AND {unexpected_sql}" if ignored_sql else unexpected_sql


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def _literal_or_null(value: Any) -> str:
    return "NULL" if value is None else sql_literal(value)
