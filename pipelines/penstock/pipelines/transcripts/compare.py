"""Whether a pane is the one expected: each field that the expected one carries, in the case's unit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isclose
from typing import Any

from penstock.pipelines.reference import Instant, Pane
from penstock.pipelines.transcripts.form import NOTES
from penstock.pipelines.transcripts.outputs import AGGREGATES
from penstock.pipelines.transcripts.units import Unit

KINDS = {"output": "insert", "insert": "insert", "retraction": "retract", "retract": "retract"}
FINEST = 1


@dataclass(frozen=True)
class Shown:
    """A pane in the words of a case."""

    pane: Pane
    unit: Unit

    @property
    def window(self) -> list[Any] | str:
        """Return [start, end) in the case's unit, or `global`."""
        if (self.pane.start, self.pane.end) == (-inf, inf):
            return "global"
        return [in_unit(self.pane.start, self.unit), in_unit(self.pane.end, self.unit)]

    @property
    def timestamp(self) -> int | None:
        """Return the pane's time: that of its elements if they give one, or the last instant of the window."""
        stamp = dict(self.pane.values).get("stamp")
        time = self.pane.end - FINEST if stamp is None else stamp
        return None if time == inf else int(time // self.unit.milliseconds)

    def as_json(self) -> dict[str, Any]:
        """Return all that a case could expect of the pane."""
        pane = self.pane
        columns = {name: value for name, value in pane.values if name != "stamp"}
        return {
            "key": pane.key[0],
            "window": self.window,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in columns.items()},
            "kind": pane.kind,
            "timing": pane.timing,
            "index": pane.pane,
            "on_time_index": pane.on_time_index,
            "final": pane.final,
            "timestamp": self.timestamp,
        }


def in_unit(time: Instant, unit: Unit) -> int | float | None:
    """Return a time in the case's unit; the ends of time have none."""
    if time in (inf, -inf):
        return None
    exact = time / unit.milliseconds
    return int(exact) if exact == int(exact) else exact


def agrees(expected: Mapping[str, Any], shown: Shown) -> bool:
    """Tell whether the pane has all that is expected of it."""
    return all(FIELDS[name](value, shown) for name, value in expected.items() if name in FIELDS)


def not_compared(expected: Mapping[str, Any]) -> set[str]:
    """Return the fields of an expected pane that mean nothing here."""
    return expected.keys() - FIELDS.keys() - NOTES


def same_window(expected: Any, shown: Shown) -> bool:
    """Compare bounds; `global` and open ends are written as words or nulls."""
    start, end = (None, None) if expected == "global" else expected
    bounds = (-inf if start is None else shown.unit.of(start), inf if end is None else shown.unit.of(end))
    return bounds == (shown.pane.start, shown.pane.end)


def same_number(expected: Any, found: Any) -> bool:
    """Compare a value; a sum over nothing is 0 to a case and null to a table."""
    if found is None:
        return expected in (None, 0)
    if isinstance(expected, int | float) and isinstance(found, int | float):
        return isclose(expected, found, rel_tol=1e-9, abs_tol=1e-9)
    return bool(expected == found)


def same_column(name: str) -> Callable[[Any, Shown], bool]:
    """Return what compares a column of the pane."""
    return lambda expected, shown: same_number(expected, dict(shown.pane.values).get(name))


def same_values(expected: Any, shown: Shown) -> bool:
    """Compare the elements of a pane, in any order."""
    found = dict(shown.pane.values).get("values") or ()
    return sorted(map(spelt, expected)) == sorted(map(spelt, found))


def spelt(value: Any) -> str:
    """Return a value as text; a number is spelt alike whatever column it comes from."""
    whole = isinstance(value, float) and value.is_integer()
    return repr(int(value) if whole else value)


def only_value(expected: Any, shown: Shown) -> bool:
    """Compare the one value of a pane whose aggregate the case names elsewhere."""
    found = [value for name, value in shown.pane.values if name in AGGREGATES]
    return len(found) == 1 and same_number(expected, found[0])


def timing(word: str) -> Callable[[Any, Shown], bool]:
    """Return what compares whether the pane has this timing."""
    return lambda expected, shown: (shown.pane.timing == word) == bool(expected)


FIELDS: dict[str, Callable[[Any, Shown], bool]] = {
    **{name: same_column(name) for name in AGGREGATES},
    "values": same_values,
    "value": only_value,
    "key": lambda expected, shown: shown.pane.key == (None if expected is None else str(expected),),
    "window": same_window,
    "kind": lambda expected, shown: KINDS.get(str(expected)) == shown.pane.kind,
    "timing": lambda expected, shown: str(expected).lower() == shown.pane.timing,
    "early": timing("early"),
    "on_time": timing("on_time"),
    "late": timing("late"),
    "index": lambda expected, shown: expected == shown.pane.pane,
    "pane": lambda expected, shown: expected == shown.pane.pane,
    "nonspeculative_index": lambda expected, shown: expected == shown.pane.on_time_index,
    "on_time_index": lambda expected, shown: expected == shown.pane.on_time_index,
    "final": lambda expected, shown: bool(expected) == shown.pane.final,
    "is_last": lambda expected, shown: bool(expected) == shown.pane.final,
    "is_first": lambda expected, shown: bool(expected) == (shown.pane.pane == 0),
    "records": lambda expected, shown: expected == shown.pane.records,
    "timestamp": lambda expected, shown: expected == shown.timestamp,
}
