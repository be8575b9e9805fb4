"""Compiles LIKE expectations to Spark SQL. Great Expectations supports them on databases only, not on Spark."""

from collections.abc import Callable
from typing import Any

from penstock.quality.expectations.arguments import ExpectationArguments, sql_literal

ESCAPE_CANDIDATES = "\\!#$&*+,-./:;<=>?@^|~"
"""Candidates for the escape character of a pattern that sets none; the first unused one is taken."""


def compile_like(*, negated: bool) -> Callable[[ExpectationArguments], str]:
    """Compile an expectation about one LIKE pattern."""

    def compiled(args: ExpectationArguments) -> str:
        column, pattern, escape = args.take_text_column(), args.take("like_pattern"), args.take("escape")
        args.refuse_remaining()
        match_sql = _like_sql(args, column, pattern, escape)
        return f"{column} IS NOT NULL AND {match_sql if negated else f'NOT ({match_sql})'}"

    return compiled


def compile_like_list(args: ExpectationArguments) -> str:
    """Compile an expectation that any or all of several patterns match."""
    column, patterns, escape = (
        args.take_text_column(),
        args.take_texts("like_pattern_list"),
        args.take("escape"),
    )
    match_on = args.take("match_on") or "any"
    args.refuse_remaining()
    if match_on not in ("any", "all"):
        raise args.refusal(f"match_on is {match_on!r}", "Write any or all")
    matches = [_like_sql(args, column, pattern, escape) for pattern in patterns]
    return f"{column} IS NOT NULL AND NOT ({(' OR ' if match_on == 'any' else ' AND ').join(matches)})"


def compile_not_like_list(args: ExpectationArguments) -> str:
    """Compile an expectation that none of several patterns matches."""
    column, patterns, escape = (
        args.take_text_column(),
        args.take_texts("like_pattern_list"),
        args.take("escape"),
    )
    args.refuse_remaining()
    matches = [_like_sql(args, column, pattern, escape) for pattern in patterns]
    return f"{column} IS NOT NULL AND ({' OR '.join(matches)})"


def _like_sql(args: ExpectationArguments, column: str, pattern: Any, escape: Any) -> str:
    if not isinstance(pattern, str):
        raise args.refusal(f"the pattern is {pattern!r}", "Give a string such as 'dev-%'")
    if escape is None:
        # Databases treat a bare backslash differently, so nothing is escaped unless `escape` is set.
        escape = next((character for character in ESCAPE_CANDIDATES if character not in pattern), None)
    if not isinstance(escape, str) or len(escape) != 1 or escape in "%_":
        raise args.refusal(f"escape is {escape!r}", "Give one character that is not in the pattern")
    characters = iter(pattern)
    for character in characters:
        if character == escape and next(characters, "") not in ("%", "_", escape):
            fix = f"Use {escape} only before %, _ or {escape}"
            raise args.refusal(f"{pattern!r} has {escape} before another character", fix)
    return f"{column} LIKE {sql_literal(pattern)} ESCAPE {sql_literal(escape)}"
