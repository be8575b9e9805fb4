"""LIKE patterns as Spark SQL, which are the library's own in databases: it has none for rows that Spark holds."""

from collections.abc import Callable
from typing import Any

from penstock.quality.expectations.arguments import Arguments, literal

UNUSED = "\\!#$&*+,-./:;<=>?@^|~"
"""Characters of which one is named as the sign that makes others plain, where a pattern asks for none."""


def like(*, negated: bool) -> Callable[[Arguments], str]:
    """Compile an expectation about one pattern."""

    def compiled(args: Arguments) -> str:
        column, pattern, escape = args.text(), args.take("like_pattern"), args.take("escape")
        args.done()
        found = _like(args, column, pattern, escape)
        return f"{column} IS NOT NULL AND {found if negated else f'NOT ({found})'}"

    return compiled


def like_list(args: Arguments) -> str:
    """Compile an expectation that some of several patterns match, or all."""
    column, patterns, escape = args.text(), args.texts("like_pattern_list"), args.take("escape")
    match_on = args.take("match_on") or "any"
    args.done()
    if match_on not in ("any", "all"):
        raise args.refused(f"match_on is {match_on!r}", "Write any or all")
    matches = [_like(args, column, pattern, escape) for pattern in patterns]
    return f"{column} IS NOT NULL AND NOT ({(' OR ' if match_on == 'any' else ' AND ').join(matches)})"


def not_like_list(args: Arguments) -> str:
    """Compile an expectation that none of several patterns matches."""
    column, patterns, escape = args.text(), args.texts("like_pattern_list"), args.take("escape")
    args.done()
    matches = [_like(args, column, pattern, escape) for pattern in patterns]
    return f"{column} IS NOT NULL AND ({' OR '.join(matches)})"


def _like(args: Arguments, column: str, pattern: Any, escape: Any) -> str:
    if not isinstance(pattern, str):
        raise args.refused(f"the pattern is {pattern!r}", "Give a text such as 'dev-%'")
    if escape is None:
        # Databases differ in what a backslash means by itself, so without a sign nothing is made plain.
        escape = next((sign for sign in UNUSED if sign not in pattern), None)
    if not isinstance(escape, str) or len(escape) != 1 or escape in "%_":
        raise args.refused(f"escape is {escape!r}", "Give one character that the pattern does not have")
    rest = iter(pattern)
    for sign in rest:
        if sign == escape and next(rest, "") not in ("%", "_", escape):
            fix = f"Put {escape} only before %, _ or {escape}"
            raise args.refused(f"{pattern!r} has {escape} before another character", fix)
    return f"{column} LIKE {literal(pattern)} ESCAPE {literal(escape)}"
