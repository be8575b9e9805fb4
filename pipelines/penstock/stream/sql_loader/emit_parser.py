"""Parser of EMIT: a trigger, then words for lateness, policies of panes and accumulation, in any order."""

from itertools import pairwise
from typing import get_args

from penstock.engine.plan.stages import AccumulationMode
from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.queries import SqlEmit
from penstock.stream.sql_loader.token_groups import Clause, iter_depths, unexpected_token
from penstock.stream.sql_loader.tokens import SqlFile, Tokens
from penstock.stream.sql_loader.values import SqlValue, parse_value, put_once
from penstock.stream.yaml_loader.document import TRIGGER_OPTIONS

ACCUMULATION_MODES: tuple[str, ...] = get_args(AccumulationMode)
FLAG_OPTION = "may_finish"
"""The option of EMIT that has no value."""


def parse_emit(file: SqlFile, clause: Clause) -> SqlEmit:
    """Parse EMIT: a trigger, then words in any order."""
    first, tokens = clause
    words = (*TRIGGER_OPTIONS, *ACCUMULATION_MODES)
    starts = [
        position
        for position, depth, token in iter_depths(tokens)
        if depth == 0 and token.upper_word.lower() in words
    ]
    trigger_tokens = tokens[: starts[0]] if starts else tokens
    if not tokens:
        raise file.problem("EMIT", "nothing follows", "Write a trigger, as in EMIT AFTER_WATERMARK", first)
    words_with_values: dict[PlacedText, SqlValue] = {}
    for start, end in pairwise([*starts, len(tokens)]):
        word = file.place(tokens[start].text.lower(), tokens[start : start + 1])
        value = _parse_word(file, word, tokens[start + 1 : end])
        name = word.renamed("accumulation") if word in ACCUMULATION_MODES else word
        put_once(file, words_with_values, name, value, "EMIT")
    return SqlEmit(parse_value(file, trigger_tokens) if trigger_tokens else None, words_with_values)


def _parse_word(file: SqlFile, word: PlacedText, tokens: Tokens) -> SqlValue:
    """Return the value of a word of EMIT: what follows it, or itself for a mode of accumulation."""
    if word in ACCUMULATION_MODES or word == FLAG_OPTION:
        _require_no_value(file, tokens)
        return word if word in ACCUMULATION_MODES else True
    if not tokens:
        problem = f"{word.upper()} has no value"
        raise file.problem("EMIT", problem, "Write it after the word, as in LATENESS 1 HOUR", word)
    return parse_value(file, tokens)


def _require_no_value(file: SqlFile, tokens: Tokens) -> None:
    if tokens:
        known = tuple(word.upper() for word in (*TRIGGER_OPTIONS, *ACCUMULATION_MODES, "into"))
        raise unexpected_token(file, "EMIT", tokens[0], known)
