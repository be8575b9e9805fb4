"""The form of what a case expects, looked at before anything runs.

A timing that does not exist, or a window of three bounds, would differ from every pane, and be told as a pane that
did not come.
"""

from collections.abc import Callable, Mapping
from typing import Any

from penstock.pipelines.errors import TranscriptError
from penstock.pipelines.transcripts.compare import FIELDS, KINDS
from penstock.pipelines.transcripts.form import (
    is_flag,
    is_number,
    is_plain,
    is_whole,
    object_at,
    objects_at,
    one_of,
    refuse_misspelt,
    wrong,
)
from penstock.pipelines.transcripts.outputs import AGGREGATES
from penstock.pipelines.transcripts.units import ENDS

PANES = "a list of panes, as in [{'window': [0, 10], 'values': [1, 2]}]; [] for none"
RECORDS = "a list of records, as in [{'key': 'k', 'value': 5}]; [] for none"
STATE = "an object, as in {'window': [0, 10], 'sum': 5}"
RECORD = ("key", "value", "timestamp")

Form = tuple[Callable[[Any], bool], str]


def is_window(found: Any) -> bool:
    """Tell whether it is the two bounds of a window, or the word for the one without bounds."""
    if found == "global":
        return True
    return isinstance(found, list) and len(found) == 2 and all(map(is_bound, found))


def is_bound(found: Any) -> bool:
    """Tell whether it is a time, or one of the ends of time."""
    return found is None or is_number(found) or (isinstance(found, str) and found in ENDS)


def are_plain(found: Any) -> bool:
    """Tell whether it is a list of values."""
    return isinstance(found, list) and all(map(is_plain, found))


VALUE: Form = (is_plain, "one value: a number, a text, true, false or null")
NUMBER: Form = (lambda found: found is None or is_number(found), "a number or null")
FLAG: Form = (is_flag, "true or false")
PLACE: Form = (is_whole, "a whole number")
FORMS: dict[str, Form] = {
    **dict.fromkeys(AGGREGATES, VALUE),
    **dict.fromkeys(("sum", "count", "mean", "timestamp"), NUMBER),
    "values": (are_plain, "a list of values"),
    "value": VALUE,
    "key": VALUE,
    "window": (is_window, "[start, end], with null for an open end, or 'global'"),
    "kind": (lambda found: isinstance(found, str) and found in KINDS, f"one of {', '.join(KINDS)}"),
    "timing": (one_of("early", "on_time", "late"), "one of early, on_time, late"),
    **dict.fromkeys(("early", "on_time", "late", "final", "is_last", "is_first"), FLAG),
    **dict.fromkeys(("index", "pane", "nonspeculative_index", "on_time_index", "records"), PLACE),
}


def check_panes(found: Any, place: str) -> None:
    """Refuse what is no list of expected panes."""
    for number, pane in enumerate(objects_at(found, place, PANES)):
        refuse_misspelt(pane, FIELDS, f"{place}[{number}]")
        check_fields(pane, f"{place}[{number}]")


def check_fields(node: Mapping[str, Any], place: str) -> None:
    """Refuse a field that could not be that of any pane."""
    for name, value in node.items():
        fits, fix = FORMS.get(name, (lambda _: True, ""))
        if not fits(value):
            raise wrong(f"{place}.{name}", value, fix)


def check_records(found: Any, place: str) -> None:
    """Refuse what is no list of records that came too late."""
    for number, record in enumerate(objects_at(found, place, RECORDS)):
        for name in record:
            if name not in RECORD:
                fix = f"{', '.join(RECORD)} of the record"
                raise TranscriptError(f"{place}[{number}] has a field {name!r}; write {fix}")
        check_fields(record, f"{place}[{number}]")


def check_sum(found: Any, place: str) -> None:
    """Refuse what does not say of which window which sum is kept."""
    wanted = object_at(found, place, STATE)
    for name in ("window", "sum"):
        if name not in wanted:
            raise wrong(place, found, STATE)
    check_fields(wanted, place)
    if wanted["window"] == "global":
        raise wrong(f"{place}.window", "global", "[start, end], with null for an open end")


def check_count(found: Any, place: str) -> None:
    """Refuse what is no number of windows."""
    if not is_whole(found) or found < 0:
        raise wrong(place, found, "how many windows are open")


CHECKED: dict[str, Callable[[Any, str], None]] = {
    "expect": check_panes,
    "expect_all": check_panes,
    "expect_late": check_records,
    "state_sum": check_sum,
    "state_windows": check_count,
}
