"""How the console writes numbers and times: separators, units, and one unknown figure for all.

A time is a `<time>` element. A script shows it in the zone of the viewer, with UTC where the mouse rests. Without
scripts it is in UTC.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

NO_FIGURE = "-"
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


def format_count(count: float | None) -> str:
    """Format a number of things with separators."""
    return NO_FIGURE if count is None else f"{count:,.0f}"


def format_rate(per_second: float | None, unit: str = "/s") -> str:
    """Format a rate: one decimal below a hundred, no decimals above."""
    if per_second is None:
        return NO_FIGURE
    return f"{per_second:,.0f}{unit}" if per_second >= 100 or not per_second else f"{per_second:.1f}{unit}"


def format_share(share: float | None) -> str:
    """Format a share as a percentage; one that is not zero is not shown as zero."""
    if share is None:
        return NO_FIGURE
    return "< 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def format_duration(milliseconds: float | None) -> str:
    """Format a duration in one readable unit. A negative one keeps its sign."""
    if milliseconds is None:
        return NO_FIGURE
    size = abs(milliseconds)
    if size < 1_000:
        return f"{milliseconds:,.0f} ms"
    for unit, length_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if size >= 2 * length_ms:
            return f"{milliseconds / length_ms:,.1f} {unit}"
    return f"{milliseconds / 1000:,.1f} s"


def format_bytes(count: float | None) -> str:
    """Format a size in bytes."""
    if count is None:
        return NO_FIGURE
    size, unit = float(count), _BYTE_UNITS[0]
    for unit in _BYTE_UNITS:
        if size < 1_000 or unit == _BYTE_UNITS[-1]:
            break
        size /= 1_000
    return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"


def format_utc(at_ms: float) -> str:
    """Format a time in UTC, with milliseconds where there are any."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}" + (f".{at.microsecond // 1000:03d}" if at.microsecond else "") + " UTC"


def time_element(at_ms: float | None, form: str = "time") -> Markup:
    """Return the element of a time. `form` says how the script shows it: `time`, `clock` or `age`."""
    if at_ms is None:
        return Markup("-")
    utc = format_utc(at_ms)
    return Markup('<time datetime="{}" data-form="{}" title="{}">{}</time>').format(
        datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds"), form, utc, utc
    )


def format_cell(value: Any) -> str | Markup:
    """Format a value of a table or a record."""
    match value:
        case None:
            return Markup('<span class="null">null</span>')
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.6g}"
        case datetime():
            return time_element((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case _:
            return str(value)


def is_figure(value: Any) -> bool:
    """Return whether a value is a number, which is aligned to the right."""
    return isinstance(value, int | float) and not isinstance(value, bool)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "count": format_count,
    "rate": format_rate,
    "share": format_share,
    "duration": format_duration,
    "bytes": format_bytes,
    "time": time_element,
    "cell": format_cell,
    "is_figure": is_figure,
}
