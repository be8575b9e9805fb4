"""What definitions of the tests name by module."""

from dataclasses import dataclass
from typing import Any

from penstock.engine.functions.stateful import KeyContext, KeyUpdate


def add_degrees(table: Any) -> Any:
    """Stand for a step over Arrow; the definitions are compared, never run."""
    return table


@dataclass(frozen=True)
class Alarm:
    """What a function remembers."""

    since: int


def alarm(call: KeyContext[Alarm]) -> KeyUpdate[Alarm]:
    """Stand for a function with a memory."""
    return KeyUpdate(call.state)


def alarms(calls: Any) -> Any:
    """Stand for a vectorized one."""
    return calls


def as_seen(row: dict[str, Any]) -> Any:
    """Stand for a function over single rows."""
    return row
