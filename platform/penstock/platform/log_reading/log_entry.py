"""An entry of a log: when, how severe, of which stream, the message, and the lines below it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error", "critical"]
LOG_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
"""The levels, from the least to the most severe."""


@dataclass(frozen=True)
class LogEntry:
    """An entry. What its line does not say is None; `details` are the lines that follow its first one."""

    first_line: str
    at_ms: int | None = None
    level: LogLevel | None = None
    stream: str | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogFilter:
    """Which entries to show. An entry without a level counts as info, one without a time as the entry before it."""

    min_level: LogLevel = "debug"
    stream: str | None = None
    since_ms: int | None = None

    def accepts(self, entry: LogEntry, previous_at_ms: int | None = None) -> bool:
        """Whether to show an entry."""
        at_ms = previous_at_ms if entry.at_ms is None else entry.at_ms
        return (
            LOG_LEVELS.index(entry.level or "info") >= LOG_LEVELS.index(self.min_level)
            and self.stream in (None, entry.stream)
            and (self.since_ms is None or (at_ms is not None and at_ms >= self.since_ms))
        )
