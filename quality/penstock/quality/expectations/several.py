"""Expectations about several columns of a row as Spark SQL."""

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

from penstock.quality.expectations.arguments import NUMBERS, Arguments, literal


def pair(condition: Callable[[str, str, bool], str]) -> Callable[[Arguments], str]:
    """Compile a comparison of two columns."""

    def compiled(args: Arguments) -> str:
        (one, kind), (other, other_kind) = args.column("column_A"), args.column("column_B")
        or_equal = args.said("or_equal")
        ignored = _ignored(args, one, other)
        args.done()
        _alike(args, [(one, kind), (other, other_kind)])
        return _unless(ignored, f"NOT ({condition(one, other, or_equal)})")

    return compiled


def greater(one: str, other: str, or_equal: bool) -> str:
    """Return the SQL that is true where one is greater."""
    return f"{one} >= {other} OR {one} <=> {other}" if or_equal else f"{one} > {other}"


def equal(one: str, other: str, _or_equal: bool) -> str:
    """Return the SQL that is true where both are equal, or null."""
    return f"{one} <=> {other}"


def pair_in_set(args: Arguments) -> str:
    """Compile an expectation that two columns have one of some pairs of values; a null is a value here."""
    (one, kind), (other, other_kind) = args.column("column_A"), args.column("column_B")
    pairs = args.take("value_pairs_set")
    ignored = _ignored(args, one, other)
    args.done()
    if not isinstance(pairs, list) or not pairs or any(not _is_pair(each) for each in pairs):
        raise args.refused(f"value_pairs_set is {pairs!r}", "Give a list of pairs of values")
    args.comparable(kind, [first for first, _ in pairs])
    args.comparable(other_kind, [second for _, second in pairs])
    inside = " OR ".join(
        f"({one} <=> {_or_null(first)} AND {other} <=> {_or_null(second)})" for first, second in pairs
    )
    return _unless(ignored, f"NOT ({inside})")


def unique_within_record(args: Arguments) -> str:
    """Compile an expectation that no two columns of a row have the same value, or null."""
    columns, ignored = _columns(args)
    same = " OR ".join(f"{one} <=> {other}" for one, other in combinations(columns, 2))
    return _unless(ignored, f"({same})")


def all_equal(args: Arguments) -> str:
    """Compile an expectation that columns of a row have one value, or null."""
    (first, *others), ignored = _columns(args)
    # Each with the first, as the library does: numbers of several types may both equal a third, and not each other.
    same = " AND ".join(f"{first} <=> {other}" for other in others)
    return _unless(ignored, f"NOT ({same})")


def _columns(args: Arguments) -> tuple[list[str], str]:
    """Take a list of columns of one kind, and the SQL that says which rows are ignored."""
    names = args.take("column_list")
    if not isinstance(names, list) or len(names) < 2:
        raise args.refused(f"column_list is {names!r}", "Give a list of two columns or more")
    found = [args.named(name) for name in names]
    _alike(args, found)
    nulls = [f"{column} IS NULL" for column, _ in found]
    match args.take("ignore_row_if", "all_values_are_missing"):
        case "all_values_are_missing":
            ignored = " AND ".join(nulls)
        case "any_value_is_missing":
            ignored = " OR ".join(nulls)
        case "never":
            ignored = ""
        case unknown:
            fix = "Write all_values_are_missing, any_value_is_missing or never"
            raise args.refused(f"ignore_row_if is {unknown!r}", fix)
    args.done()
    return [column for column, _ in found], ignored


def _alike(args: Arguments, columns: list[tuple[str, str]]) -> None:
    """Refuse columns that cannot be compared: Spark would read the text of one as a number, and fail."""
    for (one, kind), (other, other_kind) in pairwise(columns):
        if kind != other_kind and not {kind, other_kind} <= NUMBERS:
            raise args.refused(f"{one} is {kind} and {other} {other_kind}", "Compare fields of one kind")


def _ignored(args: Arguments, one: str, other: str) -> str:
    match args.take("ignore_row_if", "both_values_are_missing"):
        case "both_values_are_missing":
            return f"{one} IS NULL AND {other} IS NULL"
        case "either_value_is_missing":
            return f"{one} IS NULL OR {other} IS NULL"
        case "neither":
            return ""
        case unknown:
            raise args.refused(
                f"ignore_row_if is {unknown!r}",
                "Write both_values_are_missing, either_value_is_missing or neither",
            )


def _unless(ignored: str, unexpected: str) -> str:
    return f"NOT ({ignored}) AND {unexpected}" if ignored else unexpected


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def _or_null(value: Any) -> str:
    return "NULL" if value is None else literal(value)
