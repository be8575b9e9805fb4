"""Times in tests: text, datetimes and milliseconds."""

from datetime import UTC, datetime, timedelta
from math import inf
from typing import TypeAlias

from penstock.conformance.reference import Instant
from penstock.engine.errors import PipelineTestError

TimeLike: TypeAlias = str | datetime | int
"""A time: ISO 8601 text with an offset or `Z`, a datetime with a time zone, or milliseconds since 1970."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def utc(time: TimeLike) -> int:
    """Return a time in milliseconds since 1970, the form of a `timestamp` field in milliseconds.

    Raises PipelineTestError for text that is not ISO 8601, and for a time without an offset.
    """
    if isinstance(time, bool) or not isinstance(time, str | datetime | int):
        raise PipelineTestError(
            f"{time!r} is not a time. Write '2026-01-01T12:00:00Z', a datetime, or milliseconds"
        )
    if isinstance(time, int):
        return time
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        raise PipelineTestError(f"{time!r} is not a time. Write it as '2026-01-01T12:00:00Z'") from None
    if moment.tzinfo is None:
        raise PipelineTestError(
            f"{time!s} has no time zone. Append 'Z' for UTC, as in '2026-01-01T12:00:00Z'"
        )
    return (moment - _EPOCH) // _MILLISECOND


def format_time(instant: Instant) -> str | None:
    """Return an instant as ISO 8601 in UTC, as in `2026-01-01T12:00:00Z`: None for an infinite one."""
    if instant in (inf, -inf):
        return None
    moment = _EPOCH + int(instant) * _MILLISECOND
    return f"{moment:%Y-%m-%dT%H:%M:%S}" + (
        f".{moment.microsecond // 1000:03}Z" if moment.microsecond else "Z"
    )
