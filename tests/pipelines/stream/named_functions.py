"""Functions and a state class that pipeline definitions in tests name by module."""

from dataclasses import dataclass
from typing import Any

from penstock.engine.functions.stateful import KeyContext, KeyUpdate


def add_degrees(table: Any) -> Any:
    """An Arrow step. Definitions are only compared, so it changes nothing."""
    return table


@dataclass(frozen=True)
class Alarm:
    """The state of a key."""

    since: int


def alarm(call: KeyContext[Alarm]) -> KeyUpdate[Alarm]:
    """A stateful function."""
    return KeyUpdate(call.state)


def alarms(calls: Any) -> Any:
    """A vectorized stateful function."""
    return calls


def as_seen(row: dict[str, Any]) -> Any:
    """A function over single rows."""
    return row
