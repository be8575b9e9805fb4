"""The form of a case: what stands in a field that cannot stand there is refused by its place, with what can."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from penstock.pipelines.errors import NotInContractError, TranscriptError

NOTES = frozenset({"raw", "note", "notes", "comment", "id", "source", "confidence", "raw_timestamp"})
"""What says something to people alone, wherever it stands."""

ALIKE = 0.8
"""So alike are two words of which one is the other misspelt."""

NAMELESS = "without id"


def name_of(node: Mapping[str, Any]) -> str:
    """Return what a case is called."""
    return str(next((node[name] for name in ("id", "name") if node.get(name) is not None), NAMELESS))


def wrong(place: str, found: object, fix: str) -> TranscriptError:
    """Return the complaint about what stands at a place of a case."""
    return TranscriptError(f"{place} is {found!r}; write {fix}")


@contextmanager
def said_of(place: str) -> Iterator[None]:
    """Name the place of which is complained inside."""
    try:
        yield
    except NotInContractError:
        raise
    except TranscriptError as problem:
        raise TranscriptError(f"{place}: {problem}") from problem


def object_at(found: Any, place: str, fix: str) -> Mapping[str, Any]:
    """Return an object, or refuse what is none."""
    if not isinstance(found, Mapping):
        raise wrong(place, found, fix)
    return found


def objects_at(found: Any, place: str, fix: str) -> list[Mapping[str, Any]]:
    """Return a list of objects, or refuse what is none."""
    if not isinstance(found, list):
        raise wrong(place, found, fix)
    return [object_at(each, f"{place}[{number}]", "an object") for number, each in enumerate(found)]


def refuse_misspelt(node: Mapping[str, Any], known: Collection[str], place: str) -> None:
    """Refuse a field that is nearly one which means something and is not there: it would pass unseen."""
    absent = [word for word in known if word not in node]
    for name in node.keys() - {*known, *NOTES}:
        meant = get_close_matches(str(name), absent, 1, ALIKE)
        if meant:
            raise TranscriptError(f"{place} has a field {name!r}, which means nothing; write {meant[0]!r}")


def is_flag(found: Any) -> bool:
    """Tell whether it is true or false."""
    return isinstance(found, bool)


def is_whole(found: Any) -> bool:
    """Tell whether it is a whole number."""
    return isinstance(found, int) and not isinstance(found, bool)


def is_number(found: Any) -> bool:
    """Tell whether it is a number that has a place among others."""
    return isinstance(found, int | float) and not isinstance(found, bool) and found == found


def is_plain(found: Any) -> bool:
    """Tell whether it is one value, as a field of a record has it."""
    return found is None or isinstance(found, str | int | float | bool)


def flag_in(node: Mapping[str, Any], name: str, place: str) -> bool:
    """Return a field that is true or false; without it, it is false."""
    found = node.get(name, False)
    if not is_flag(found):
        raise wrong(f"{place}`{name}`", found, "true or false")
    return bool(found)


def one_of(*words: str) -> Callable[[Any], bool]:
    """Return what tells whether something is one of these words, in capitals or not."""
    return lambda found: isinstance(found, str) and found.lower() in words


def told(problem: Exception) -> str:
    """Say what Python found, without its words: they speak of our code."""
    match problem:
        case KeyError(args=(str(name),)):
            return f"{name!r} is missing"
        case _:
            return "a part of it is of another kind than the schema has there"
