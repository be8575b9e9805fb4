"""Editing of input lines in a terminal: completion by Tab, and a history in a file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

MAX_HISTORY_LINES = 1_000
WORD_DELIMITERS = " \t\n,;()=<>+-*/"

Completer: TypeAlias = Callable[[str, str], Sequence[str]]
"""Returns what a prefix may become, given the whole line."""


@contextmanager
def edit_lines(history: Path, complete: Completer) -> Iterator[None]:
    """Let `input` complete words and remember lines; without the library readline, lines are read as they are."""
    try:
        import readline
    except ImportError:  # Python without readline
        yield
        return
    with suppress(OSError):  # the first session
        readline.read_history_file(history)
    candidates: list[str] = []

    def complete_word(prefix: str, index: int) -> str | None:
        if index == 0:
            candidates[:] = complete(prefix, readline.get_line_buffer())
        return candidates[index] if index < len(candidates) else None

    readline.set_completer(complete_word)
    readline.set_completer_delims(WORD_DELIMITERS)
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        readline.set_history_length(MAX_HISTORY_LINES)
        with suppress(OSError):  # a home that cannot be written
            readline.write_history_file(history)
