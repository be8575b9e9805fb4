"""The lines of an entry as a person reads them: long stack traces become one line, with the line of user code."""

import re
from collections.abc import Iterator

from penstock.engine.user_tracebacks import parse_user_traceback
from penstock.platform.log_reading.log_entry import LogEntry

MAX_SHOWN_DETAILS = 20
"""How many lines below an entry are printed, unless they are a stack trace of Java or Scala."""

_JAVA_FRAME = re.compile(r"^\s+at [\w.$/<>]+\(")
_ERROR_LINE = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Error|Exception)\b.*")


def render_entry(entry: LogEntry, *, full: bool = False) -> Iterator[str]:
    """Yield the lines to print. Without `full`, a long stack trace is folded."""
    yield entry.first_line
    is_short = len(entry.details) <= MAX_SHOWN_DETAILS and not any(map(_JAVA_FRAME.match, entry.details))
    if full or is_short:
        yield from entry.details
    elif entry.details:
        yield f"    {_summarize_trace(entry)} ({len(entry.details)} lines; --full shows them)"


def _summarize_trace(entry: LogEntry) -> str:
    """Return the error of user code with its place, or the last cause in the trace."""
    user_traceback = parse_user_traceback("\n".join([entry.first_line, *entry.details]))
    if user_traceback is not None:
        return f"{user_traceback.location}: {user_traceback.error}"
    errors = [line.removeprefix("Caused by: ") for line in entry.details if _ERROR_LINE.match(line)]
    return errors[-1] if errors else "…"
