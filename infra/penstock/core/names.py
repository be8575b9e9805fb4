"""Names that a user typed: the nearest known ones, and the sentence about one that does not exist."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from types import MappingProxyType

MIN_SIMILARITY = 0.7
"""The least ratio of `difflib` at which two names count as similar."""
MAX_LISTED_NAMES = 8
"""Lists of at most this many names are printed in full; of a longer one, the most similar names are printed."""

NO_SYNONYMS: Mapping[str, str] = MappingProxyType({})


def find_nearest_name(
    name: str,
    known_names: Iterable[str],
    synonyms: Mapping[str, str] = NO_SYNONYMS,
    min_similarity: float = MIN_SIMILARITY,
) -> str | None:
    """Return the known name that was probably meant, None where none is similar.

    Case, `_`, `-` and blanks do not matter. `synonyms` are the words of other systems, in lower case and without
    these characters, with the known name for each: `{"avg": "mean"}`.
    """
    known = list(known_names)
    synonym = synonyms.get(_normalize(name))
    if synonym in known:
        return synonym
    if nearest := _find_similar(name, known, min_similarity):
        return nearest
    similar_synonym = _find_similar(
        name, [word for word, meant in synonyms.items() if meant in known], min_similarity
    )
    return None if similar_synonym is None else synonyms[similar_synonym]


def suggest_name(name: str, known_names: Iterable[str], synonyms: Mapping[str, str] = NO_SYNONYMS) -> str:
    """Return " Did you mean 'x'?" with the nearest name, for the end of a sentence; empty if none is similar."""
    nearest = find_nearest_name(name, known_names, synonyms)
    return f" Did you mean {nearest!r}?" if nearest else ""


def list_names(name: str, known_names: Iterable[str]) -> str:
    """Return the known names for a message about an unknown one: all in their order, or the most similar ones.

    >>> list_names("d", "abcdefghijkl")
    'd, a, b, c, e, f, g, h and 4 more'
    """
    known = sorted(known_names) if isinstance(known_names, AbstractSet) else list(dict.fromkeys(known_names))
    if len(known) <= MAX_LISTED_NAMES:
        return ", ".join(known) or "none"
    by_similarity = sorted(known, key=lambda other: -_similarity(name, other))
    return f"{', '.join(by_similarity[:MAX_LISTED_NAMES])} and {len(known) - MAX_LISTED_NAMES} more"


def suggest_or_list(
    name: str, known_names: Iterable[str], label: str, synonyms: Mapping[str, str] = NO_SYNONYMS
) -> str:
    """Return the fix for an unknown name: the nearest name if there is one, and the known names if they are few.

    >>> suggest_or_list("amout", ["amount", "country"], "Known fields")
    "Did you mean 'amount'? Known fields: amount, country"
    """
    known = list(known_names)
    suggestion = suggest_name(name, known, synonyms).lstrip()
    is_list_useful = not suggestion or len(known) <= MAX_LISTED_NAMES
    return f"{suggestion} {label}: {list_names(name, known)}".lstrip() if is_list_useful else suggestion


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


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _find_similar(name: str, candidates: Iterable[str], min_similarity: float) -> str | None:
    nearest = max(candidates, key=lambda other: _similarity(name, other), default=None)
    return nearest if nearest is not None and _similarity(name, nearest) >= min_similarity else None


def _similarity(name: str, other: str) -> float:
    return SequenceMatcher(None, _normalize(name), _normalize(other)).ratio()


def _normalize(name: str) -> str:
    return name.lower().translate(str.maketrans("", "", "_- "))
