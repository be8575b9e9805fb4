"""What is written down in a definition: names, columns with their types, and each answer once."""

from collections.abc import Mapping, Sequence

from penstock.pipelines.plan.checks import of_kind, require
from penstock.pipelines.plan.source import Column


def columns_of(written: Mapping[str, str], place: str) -> tuple[Column, ...]:
    """Return columns that are written down with their types."""
    fix = "Write names and types, as in {'word': 'STRING'}"
    of_kind(written, Mapping, place, fix)
    for pair in written.items():
        require(all(isinstance(each, str) for each in pair), f"{place}.{pair[0]}", repr(pair[1]), fix)
    return tuple(Column(name, kind) for name, kind in written.items())


def taken_of(take: Mapping[str, str] | Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the columns of a join, each with where it comes from."""
    if isinstance(take, Mapping):
        names_of([*take.keys(), *take.values()], "join.take")
        return tuple(take.items())
    return tuple((name, name) for name in names_of(take, "join.take"))


def names_of(written: str | Sequence[str], place: str) -> tuple[str, ...]:
    """Return one name, or several."""
    found: object = [written] if isinstance(written, str) else written
    several = isinstance(found, list | tuple) and all(isinstance(each, str) for each in found)
    require(several, place, repr(written), "Write a name, or a list of names")
    return tuple(found) if isinstance(found, list | tuple) else ()


def once(present: object, question: str) -> None:
    """Refuse a second answer to one question."""
    require(present is None, question, "answered twice", "Leave one of the two out")
