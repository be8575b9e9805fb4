"""Names that a user typed: the nearest known one, and the sentence about one that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

MIN_SIMILARITY = 0.7
"""The least ratio of `difflib` at which two names count as similar."""
MAX_LISTED_NAMES = 5
"""Lists of at most this many names are printed in full; a longer one is left to a command that prints it."""


def find_nearest_name(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that is most like this one, None where none is similar. Case does not matter."""
    name_by_lower = {known.lower(): known for known in known_names}
    matches = get_close_matches(name.lower(), name_by_lower, 1, MIN_SIMILARITY)
    return name_by_lower[matches[0]] if matches else None


def explain_unknown_name(kind: str, name: str, known_names: Iterable[str], list_command: str = "") -> str:
    """Return the sentence for a name that does not exist: the nearest match, or where the names are listed.

    >>> explain_unknown_name("stream", "sensor_minut", ["sensor_minute", "hashtags"])
    "there is no stream 'sensor_minut'. Did you mean 'sensor_minute'?"
    """
    known = list(known_names)
    start = f"there is no {kind} {name!r}"
    if nearest := find_nearest_name(name, known):
        return f"{start}. Did you mean {nearest!r}?"
    if not known:
        return f"{start}, and no other {kind} either"
    if list_command and len(known) > MAX_LISTED_NAMES:
        return f"{start}; `{list_command}` lists all {len(known)}"
    if len(known) > MAX_LISTED_NAMES:
        return f"{start}, and none of the {len(known)} known names is similar"
    return f"{start}; known names: {', '.join(known)}"


def suggest_name(name: str, known_names: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" with the nearest name, for the end of a sentence; empty if none is similar."""
    nearest = find_nearest_name(name, known_names)
    return f" Did you mean {nearest!r}?" if nearest else ""


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
