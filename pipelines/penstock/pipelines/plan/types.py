"""The types of columns that a person writes down, in Spark's words, and what can be computed of a type."""

from collections.abc import Iterable, Mapping

from penstock.pipelines.plan.aggregates import Aggregate, Mean, OfInput, Output, Quantiles, Sum
from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.predicates import Predicate, compared
from penstock.pipelines.plan.source import Column

WORDS = ("STRING", "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "BINARY")
"""The types that a column of one's own may have; beside them there are arrays of these."""

_NUMBERS = ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "DOUBLE", "DECIMAL")
KINDS_OF: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(_NUMBERS, (int, float)),
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR"), (str,)),
    "BOOLEAN": (bool,),
}
"""What a field of a type may be compared with; those that are not listed are compared as Spark does it."""

NO_NUMBERS = ("STRING", "VARCHAR", "CHAR", "BOOLEAN", "BINARY", "ARRAY", "MAP", "STRUCT")
NO_KEYS = ("ARRAY", "MAP", "STRUCT")
OF_ONE_VALUE = "Group by a field of one value: flat_map makes a row of each value of a list, map a text of it"
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
    head = head_of(kind or "")
    found = f"{getattr(of, 'field', None)!r} is {kind}, which has no {what}"
    require(head not in refused, f"aggregate.{output.name}", found, "Name a field of numbers")


def check_distance(field: str, known: Mapping[str, str | None]) -> None:
    """Refuse distances between what are no numbers, where the type of the field is known."""
    kind = known.get(field) or ""
    fix = "Name a field of numbers"
    found = f"{field!r} is {kind}, which has no distances"
    require(head_of(kind) not in NOT_ADDED, "window.delta.field", found, fix)


def check_key(names: Iterable[str], known: Mapping[str, str | None]) -> None:
    """Refuse to group by what has parts, where the type of the field is known."""
    for name in names:
        kind = known.get(name) or ""
        require(head_of(kind) not in NO_KEYS, "key", f"{name!r} is {kind}", OF_ONE_VALUE)


def check_condition(predicate: Predicate, known: Mapping[str, str | None], place: str) -> None:
    """Refuse to compare a field with a constant of another kind: Spark would fail at the first record."""
    for field, constant in compared(predicate):
        kind = head_of(known.get(field) or "")
        allowed = KINDS_OF.get(kind, (str, int, float, bool))
        alike = isinstance(constant, allowed) and (bool in allowed or not isinstance(constant, bool))
        found = f"{field!r} is {known.get(field)}, and {constant!r} is none"
        require(
            alike,
            place,
            found,
            "Compare it with a constant of its own type: 'text' in quotes, numbers without",
        )


def head_of(kind: str) -> str:
    """Return a type's word without what is written behind it: that of `DECIMAL(10, 2)` is DECIMAL."""
    return kind.upper().partition("<")[0].partition("(")[0].strip()


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
