"""English phrases for durations and lists."""

DURATION_UNITS_MS = (
    ("day", 86_400_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1_000),
    ("ms", 1),
)


def format_duration(milliseconds: int) -> str:
    """Format a duration: `1 hour 30 minutes`."""
    unit_phrases: list[str] = []
    for unit, length in DURATION_UNITS_MS:
        number, milliseconds = divmod(milliseconds, length)
        if number:
            unit_phrases.append(f"{number} {unit}{'s' if number > 1 and unit != 'ms' else ''}")
    return " ".join(unit_phrases) or "0 seconds"


def format_delay(milliseconds: int) -> str:
    """Format a delay that may be zero: ` by 1 minute` or nothing."""
    return f" by {format_duration(milliseconds)}" if milliseconds else ""


def format_offset(milliseconds: int) -> str:
    """Format the offset of windows or firings: `, shifted by 1 hour` or nothing."""
    return f", shifted by {format_duration(milliseconds)}" if milliseconds else ""


def join_phrases(items: list[str], conjunction: str = "and") -> str:
    """Join items: `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {conjunction} {items[-1]}"
