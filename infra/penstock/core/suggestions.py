"""The nearest match of a misspelled name, for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" with the name that is nearest to a misspelled one; empty if none is near."""
    matches = get_close_matches(name, list(names), 1)
    return f" Did you mean '{matches[0]}'?" if matches else ""
