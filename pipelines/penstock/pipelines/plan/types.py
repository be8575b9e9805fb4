"""The types of columns that a person writes down, in Spark's words, and what can be computed of a type."""

from collections.abc import Iterable, Mapping

from penstock.pipelines.plan.aggregates import Aggregate, Mean, OfInput, Output, Quantiles, Sum
from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.source import Column

WORDS = ("STRING", "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "BINARY")
"""The types that a column of one's own may have; beside them there are arrays of these."""

NO_NUMBERS = ("STRING", "VARCHAR", "CHAR", "BOOLEAN", "BINARY", "ARRAY", "MAP", "STRUCT")
NOT_ADDED = (*NO_NUMBERS, "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")


def check_words(columns: Iterable[Column], place: str) -> None:
    """Refuse a word that names no type, where it was written."""
    for column in columns:
        fix = f"Write one of: {', '.join(WORDS)}, or ARRAY<one of them>"
        require(is_known(column.type), f"{place}.{column.name}", f"{column.type!r}", fix)


def is_known(word: str) -> bool:
    """Tell whether a word names a type that a column of one's own may have."""
    word = word.strip().upper()
    if word.startswith("ARRAY<") and word.endswith(">"):
        return is_known(word[6:-1])
    return word in WORDS


def check_numbers(output: Output, known: Mapping[str, str | None]) -> None:
    """Refuse to add up what is no number, where the type of the field is known."""
    of, (what, refused) = measured(output.of)
    kind = known.get(getattr(of, "field", "")) if refused else None
    head = (kind or "").upper().partition("<")[0].partition("(")[0].strip()
    found = f"{getattr(of, 'field', None)!r} is {kind}, which has no {what}"
    require(head not in refused, f"aggregate.{output.name}", found, "Name a field of numbers")


def measured(of: Aggregate) -> tuple[Aggregate, tuple[str, tuple[str, ...]]]:
    """Return what is computed, what it is called, and the types that it cannot be computed of."""
    match of:
        case Sum() | Mean():
            return of, ("sum", NOT_ADDED)
        case Quantiles():
            return of, ("quantiles", NO_NUMBERS)
        case OfInput(of=inner):
            return measured(inner)
        case _:
            return of, ("", ())
