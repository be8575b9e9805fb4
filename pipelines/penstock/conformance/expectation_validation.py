"""Validates the expectations of a case before it runs.

An unknown timing or a window with three bounds would differ from every pane, and be reported as a missing pane.
"""

from collections.abc import Callable, Mapping
from typing import Any

from penstock.conformance.aggregate_parser import CASE_AGGREGATES
from penstock.conformance.field_validation import (
    invalid_field_error,
    is_flag,
    is_integer,
    is_number,
    is_scalar,
    matches_one_of,
    refuse_misspelled_fields,
    require_object,
    require_objects,
)
from penstock.conformance.pane_comparison import FIELD_COMPARATORS, PANE_KINDS
from penstock.conformance.time_units import INFINITE_TIMES
from penstock.engine.errors import TranscriptError

PANES_HINT = "a list of panes, such as [{'window': [0, 10], 'values': [1, 2]}]; [] for none"
RECORDS_HINT = "a list of records, such as [{'key': 'k', 'value': 5}]; [] for none"
STATE_HINT = "an object, such as {'window': [0, 10], 'sum': 5}"
LATE_RECORD_FIELDS = ("key", "value", "timestamp")

FieldForm = tuple[Callable[[Any], bool], str]


def is_window_bounds(bounds: Any) -> bool:
    """Tell whether it is two window bounds, or the keyword of the global window."""
    if bounds == "global":
        return True
    return isinstance(bounds, list) and len(bounds) == 2 and all(map(is_time_bound, bounds))


def is_time_bound(bound: Any) -> bool:
    """Tell whether it is a time or infinity."""
    return bound is None or is_number(bound) or (isinstance(bound, str) and bound in INFINITE_TIMES)


def is_scalar_list(items: Any) -> bool:
    """Tell whether it is a list of single values."""
    return isinstance(items, list) and all(map(is_scalar, items))


SCALAR_FORM: FieldForm = (is_scalar, "one value: a number, a string, true, false or null")
NUMBER_FORM: FieldForm = (lambda value: value is None or is_number(value), "a number or null")
FLAG_FORM: FieldForm = (is_flag, "true or false")
INDEX_FORM: FieldForm = (is_integer, "an integer")
FIELD_FORMS: dict[str, FieldForm] = {
    **dict.fromkeys(CASE_AGGREGATES, SCALAR_FORM),
    **dict.fromkeys(("sum", "count", "mean", "timestamp"), NUMBER_FORM),
    "values": (is_scalar_list, "a list of values"),
    "value": SCALAR_FORM,
    "key": SCALAR_FORM,
    "window": (is_window_bounds, "[start, end], with null for an open end, or 'global'"),
    "kind": (lambda value: isinstance(value, str) and value in PANE_KINDS, f"one of {', '.join(PANE_KINDS)}"),
    "timing": (matches_one_of("early", "on_time", "late"), "one of early, on_time, late"),
    **dict.fromkeys(("early", "on_time", "late", "final", "is_last", "is_first"), FLAG_FORM),
    **dict.fromkeys(("index", "pane", "nonspeculative_index", "on_time_index", "records"), INDEX_FORM),
}


def validate_panes(panes: Any, path: str) -> None:
    """Refuse an invalid list of expected panes."""
    for number, pane in enumerate(require_objects(panes, path, PANES_HINT)):
        refuse_misspelled_fields(pane, FIELD_COMPARATORS, f"{path}[{number}]")
        validate_fields(pane, f"{path}[{number}]")


def validate_fields(node: Mapping[str, Any], path: str) -> None:
    """Refuse a field that no pane could have."""
    for name, value in node.items():
        is_valid, fix = FIELD_FORMS.get(name, (lambda _: True, ""))
        if not is_valid(value):
            raise invalid_field_error(f"{path}.{name}", value, fix)


def validate_late_records(records: Any, path: str) -> None:
    """Refuse an invalid list of late records."""
    for number, record in enumerate(require_objects(records, path, RECORDS_HINT)):
        for name in record:
            if name not in LATE_RECORD_FIELDS:
                fix = f"{', '.join(LATE_RECORD_FIELDS)} of the record"
                raise TranscriptError(f"{path}[{number}] has a field {name!r}; write {fix}")
        validate_fields(record, f"{path}[{number}]")


def validate_state_sum(state: Any, path: str) -> None:
    """Refuse an invalid window or sum of the state."""
    expected_state = require_object(state, path, STATE_HINT)
    for name in ("window", "sum"):
        if name not in expected_state:
            raise invalid_field_error(path, state, STATE_HINT)
    validate_fields(expected_state, path)
    if expected_state["window"] == "global":
        raise invalid_field_error(f"{path}.window", "global", "[start, end], with null for an open end")


def validate_window_count(count: Any, path: str) -> None:
    """Refuse an invalid number of windows."""
    if not is_integer(count) or count < 0:
        raise invalid_field_error(path, count, "the number of open windows")


EXPECTATION_VALIDATORS: dict[str, Callable[[Any, str], None]] = {
    "expect": validate_panes,
    "expect_all": validate_panes,
    "expect_late": validate_late_records,
    "state_sum": validate_state_sum,
    "state_windows": validate_window_count,
}
