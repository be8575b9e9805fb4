"""What a host reports about a failed stream: one line for people, and the traceback of user code.

Plans, Scala frames and internal column names of Spark stay in the log file.
"""

import re

from penstock.core.errors import PenstockError
from penstock.engine.errors import DefinitionError
from penstock.engine.user_tracebacks import parse_user_traceback, read_user_traceback

_COLUMN_ID = re.compile(r"(?<=\w)#\d+L?\b")
_SQL_STATE = re.compile(r"\.?\s*SQLSTATE: \w+.*")
_CAUSED_BY = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+: .+)", re.MULTILINE)


def summarize_error(error: BaseException) -> str:
    """Return an error in one line. It starts with the class of the error, unless the error is one of Penstock."""
    text = str(error)
    if isinstance(error, PenstockError):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return "; ".join(lines)
    user_traceback = parse_user_traceback(text)
    if user_traceback is not None:
        return f"{user_traceback.frames[-1].function} ({user_traceback.location}): {user_traceback.error}"
    own_traceback = read_user_traceback(error)
    if own_traceback.frames:  # of a sink or source of the user, which the engine calls in its own process
        return f"{own_traceback.frames[-1].function} ({own_traceback.location}): {own_traceback.error}"
    message = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if message.startswith("An error occurred while calling") and (cause := _CAUSED_BY.search(text)):
        message = cause[1]
    message = _COLUMN_ID.sub("", _SQL_STATE.sub("", message))
    return f"{type(error).__name__}: {message}".rstrip(": ")


def describe_user_traceback(error: BaseException) -> str:
    """Return the user's own traceback of an error; empty if no user code takes part.

    A definition error without a cause names its file and line itself.
    """
    is_definition = isinstance(error, DefinitionError) and error.__cause__ is None
    return "" if is_definition else read_user_traceback(error).as_text()
