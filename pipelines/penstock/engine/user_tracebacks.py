"""Tracebacks of user code: the frames of user files, and a count of the other ones.

An exception of a function in an executor reaches the driver as text inside of Spark's own error, so exceptions and
texts are read.
"""

import re
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from penstock.core.display_path import display_path
from penstock.engine.errors import UserCodeError
from penstock.engine.user_modules import is_user_file

MAX_SHOWN_FRAMES = 8

MODULE_PREFIX = re.compile(r"^[\w.]+:")
_FRAME_LINE = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_ERROR_LINE = re.compile(r"^(?P<error>[\w.]*(?:Error|Exception|Interrupt|Exit|Iteration|Warning|Group)\b.*)")


@dataclass(frozen=True)
class UserFrame:
    """A call in a user file."""

    file: str
    line: int
    function: str
    source: str = ""

    @property
    def location(self) -> str:
        """The file, relative to the current folder if possible, and the line."""
        return display_path(Path(self.file), self.line)


@dataclass(frozen=True)
class UserTraceback:
    """The error of user code, the frames of user files from the outermost, and how many other frames there are."""

    error: str
    frames: tuple[UserFrame, ...]
    hidden_frame_count: int = 0

    @property
    def location(self) -> str:
        """Where the innermost user frame is; empty if no user file takes part."""
        return self.frames[-1].location if self.frames else ""

    def as_text(self) -> str:
        """Return the traceback as Python prints it, with the user frames only; empty without any."""
        if not self.frames:
            return ""
        lines = ["Traceback (most recent call last):"]
        for frame in self.frames[-MAX_SHOWN_FRAMES:]:
            lines.append(f"  {frame.location}, in {frame.function}")
            lines += [f"    {frame.source}"] if frame.source else []
        lines.append(self.error)
        if hidden_count := self.hidden_frame_count + max(len(self.frames) - MAX_SHOWN_FRAMES, 0):
            frames = "1 frame" if hidden_count == 1 else f"{hidden_count} frames"
            lines.append(f"({frames} of libraries and of the engine hidden)")
        return "\n".join(lines)


def wrap_user_error(function: str, error: BaseException) -> UserCodeError:
    """Return the error of a user function with its file and line. `function` may be `module:name`."""
    keyword, _, name = function.rpartition(" ")
    short_name = MODULE_PREFIX.sub("", name)
    location = read_user_traceback(error).location
    return UserCodeError(f"{keyword} {short_name}".lstrip(), error, location)


def read_user_traceback(error: BaseException) -> UserTraceback:
    """Return the traceback of the error in a chain of causes that has user frames, innermost first."""
    candidates = [_read_exception(each) for each in _iter_causes(error)]
    candidates += [parsed for each in _iter_causes(error) if (parsed := parse_user_traceback(str(each)))]
    return next((each for each in reversed(candidates) if each.frames), candidates[0])


def parse_user_traceback(text: str) -> UserTraceback | None:
    """Return the traceback in a text, such as that of Spark's PythonException; None if it has no user frame.

    Of chained exceptions, it is the first one with user frames: the cause of the others.
    """
    frames: list[UserFrame] = []
    other_count = 0
    for line, next_line in pairwise([*text.splitlines(), ""]):
        if match := _FRAME_LINE.match(line):
            if is_user_file(Path(match["file"])):
                source = (
                    "" if _FRAME_LINE.match(next_line) or _ERROR_LINE.match(next_line) else next_line.strip()
                )
                frames.append(UserFrame(match["file"], int(match["line"]), match["function"], source))
            else:
                other_count += 1
        elif match := _ERROR_LINE.match(line):
            if frames:
                return UserTraceback(match["error"].strip(), tuple(frames), other_count)
            other_count = 0
    return None


def _read_exception(error: BaseException) -> UserTraceback:
    summaries = traceback.extract_tb(error.__traceback__)
    frames = tuple(_iter_user_frames(summaries))
    error_text = f"{type(error).__name__}: {error}".splitlines()[0]
    return UserTraceback(error_text, frames, len(summaries) - len(frames))


def _iter_user_frames(summaries: Iterable[traceback.FrameSummary]) -> Iterator[UserFrame]:
    for summary in summaries:
        if is_user_file(Path(summary.filename)):
            yield UserFrame(summary.filename, summary.lineno or 0, summary.name, summary.line or "")


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, the original one last."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
