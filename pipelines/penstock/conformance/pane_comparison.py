"""Compares a pane with an expected one, field by field, in the unit of the case."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isclose
from typing import Any

from penstock.conformance.aggregate_parser import CASE_AGGREGATES
from penstock.conformance.field_validation import COMMENT_KEYS
from penstock.conformance.reference import Instant, Pane
from penstock.conformance.time_units import TimeUnit

PANE_KINDS = {"output": "insert", "insert": "insert", "retraction": "retract", "retract": "retract"}
MIN_TIME_STEP_MS = 1


@dataclass(frozen=True)
class CasePane:
    """A pane in the terms of a case."""

    pane: Pane
    unit: TimeUnit

    @property
    def window(self) -> list[Any] | str:
        """Return [start, end) in the unit of the case, or `global`."""
        if (self.pane.start, self.pane.end) == (-inf, inf):
            return "global"
        return [to_case_unit(self.pane.start, self.unit), to_case_unit(self.pane.end, self.unit)]

    @property
    def timestamp(self) -> int | None:
        """Return the timestamp of the pane: from its elements, or the last instant of the window."""
        output_time = dict(self.pane.values).get("stamp")
        time = self.pane.end - MIN_TIME_STEP_MS if output_time is None else output_time
        return None if time == inf else int(time // self.unit.milliseconds)

    def as_json(self) -> dict[str, Any]:
        """Return all fields that a case could expect."""
        pane = self.pane
        columns = {name: value for name, value in pane.values if name != "stamp"}
        return {
            "key": pane.key[0],
            "window": self.window,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in columns.items()},
            "kind": pane.kind,
            "timing": pane.timing,
            "index": pane.pane_index,
            "on_time_index": pane.on_time_index,
            "final": pane.final,
            "timestamp": self.timestamp,
        }


def to_case_unit(time: Instant, unit: TimeUnit) -> int | float | None:
    """Convert a time to the unit of the case; infinity has no number."""
    if time in (inf, -inf):
        return None
    exact = time / unit.milliseconds
    return int(exact) if exact == int(exact) else exact


def matches_expected(expected: Mapping[str, Any], actual: CasePane) -> bool:
    """Tell whether the pane has all expected fields."""
    return all(
        FIELD_COMPARATORS[name](value, actual)
        for name, value in expected.items()
        if name in FIELD_COMPARATORS
    )


def find_uncompared_fields(expected: Mapping[str, Any]) -> set[str]:
    """Return the fields of an expected pane that are unknown."""
    return expected.keys() - FIELD_COMPARATORS.keys() - COMMENT_KEYS


def is_same_window(expected: Any, actual: CasePane) -> bool:
    """Compare bounds; `global` and infinite bounds are keywords or nulls."""
    start, end = (None, None) if expected == "global" else expected
    bounds = (
        -inf if start is None else actual.unit.to_milliseconds(start),
        inf if end is None else actual.unit.to_milliseconds(end),
    )
    return bounds == (actual.pane.start, actual.pane.end)


def is_same_value(expected: Any, actual: Any) -> bool:
    """Compare a value. A sum of nothing is 0 in a case and null in a table."""
    if actual is None:
        return expected in (None, 0)
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-9)
    return bool(expected == actual)


def compare_column(name: str) -> Callable[[Any, CasePane], bool]:
    """Return the comparison for a column of the pane."""
    return lambda expected, shown: is_same_value(expected, dict(shown.pane.values).get(name))


def has_same_elements(expected: Any, actual: CasePane) -> bool:
    """Compare the elements of a pane, in any order."""
    elements = dict(actual.pane.values).get("values") or ()
    return sorted(map(normalize_value, expected)) == sorted(map(normalize_value, elements))


def normalize_value(value: Any) -> str:
    """Return a value as text; numbers are formatted alike for all column types."""
    is_integral = isinstance(value, float) and value.is_integer()
    return repr(int(value) if is_integral else value)


def is_only_value(expected: Any, actual: CasePane) -> bool:
    """Compare the only value of a pane, if the case names the aggregate elsewhere."""
    aggregate_values = [value for name, value in actual.pane.values if name in CASE_AGGREGATES]
    return len(aggregate_values) == 1 and is_same_value(expected, aggregate_values[0])


def compare_timing(pane_timing: str) -> Callable[[Any, CasePane], bool]:
    """Return the comparison for a timing."""
    return lambda expected, shown: (shown.pane.timing == pane_timing) == bool(expected)


FIELD_COMPARATORS: dict[str, Callable[[Any, CasePane], bool]] = {
    **{name: compare_column(name) for name in CASE_AGGREGATES},
    "values": has_same_elements,
    "value": is_only_value,
    "key": lambda expected, shown: shown.pane.key == (None if expected is None else str(expected),),
    "window": is_same_window,
    "kind": lambda expected, shown: PANE_KINDS.get(str(expected)) == shown.pane.kind,
    "timing": lambda expected, shown: str(expected).lower() == shown.pane.timing,
    "early": compare_timing("early"),
    "on_time": compare_timing("on_time"),
    "late": compare_timing("late"),
    "index": lambda expected, shown: expected == shown.pane.pane_index,
    "pane": lambda expected, shown: expected == shown.pane.pane_index,
    "nonspeculative_index": lambda expected, shown: expected == shown.pane.on_time_index,
    "on_time_index": lambda expected, shown: expected == shown.pane.on_time_index,
    "final": lambda expected, shown: bool(expected) == shown.pane.final,
    "is_last": lambda expected, shown: bool(expected) == shown.pane.final,
    "is_first": lambda expected, shown: bool(expected) == (shown.pane.pane_index == 0),
    "records": lambda expected, shown: expected == shown.pane.records,
    "timestamp": lambda expected, shown: expected == shown.timestamp,
}
