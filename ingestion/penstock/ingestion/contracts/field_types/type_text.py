"""Splits the text of types at commas and colons outside of brackets."""

from collections.abc import Iterator

_OPENING, _CLOSING = "<(", ">)"


def split_outside_brackets(text: str, separator: str, *, limit: int | None = None) -> list[str]:
    """Return the parts of a text between separators that are in no brackets, without blanks around them.

    >>> split_outside_brackets("id: int, at: array<map<string, int>>", ",")
    ['id: int', 'at: array<map<string, int>>']
    """
    positions = list(_find_outside_brackets(text, separator))[:limit]
    edges = zip([0, *(position + 1 for position in positions)], [*positions, len(text)], strict=True)
    return [text[start:end].strip() for start, end in edges]


def _find_outside_brackets(text: str, separator: str) -> Iterator[int]:
    depth = 0
    for position, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == separator and depth == 0:
            yield position
