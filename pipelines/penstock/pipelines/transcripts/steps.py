"""The `steps` of a case as batches: elements, a watermark or a clock, one after the other."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

from penstock.pipelines.errors import TranscriptError
from penstock.pipelines.reference import Batch, Record
from penstock.pipelines.transcripts.form import (
    flag_in,
    is_plain,
    objects_at,
    refuse_misspelt,
    said_of,
    wrong,
)
from penstock.pipelines.transcripts.outputs import stamp_of
from penstock.pipelines.transcripts.units import FURTHEST, Unit

ELEMENT = ("key", "value", "ts", "timestamp", "punctuation", "punct")
"""What an element may have."""


class Steps:
    """Turns steps into batches. The clock and the watermark stay where a step has put them, and never go back."""

    MOVES = frozenset({"elements", "watermark", "processing_time"})

    def __init__(self, unit: Unit, case: Mapping[str, Any]) -> None:
        self.unit = unit
        self.stamp = stamp_of(case)
        self.later = output_delay(case, unit)
        self.now = Batch(0, 0, watermark=-inf)
        self.offset = 0

    def batches(self, steps: Iterable[Mapping[str, Any]]) -> list[Batch]:
        """Return a batch for each step that moves something."""
        found: list[Batch] = []
        for number, step in enumerate(steps, 1):
            if self.moves(step):
                with said_of(f"step {number}"):
                    found.append(self.batch(len(found), step))
        return found

    def moves(self, step: Mapping[str, Any]) -> bool:
        """Tell whether the step brings elements, a watermark or a clock."""
        return bool(step.keys() & self.MOVES)

    def batch(self, number: int, step: Mapping[str, Any]) -> Batch:
        """Return the batch of one step."""
        if "processing_time" in step:
            self.now = replace(self.now, clock=max(self.now.clock, self.clock(step["processing_time"])))
        if "watermark" in step:
            before = -inf if self.now.watermark is None else self.now.watermark
            moved = max(before, self.unit.instant(step["watermark"], "`watermark`"))
            self.now = replace(self.now, watermark=moved, ends=moved == inf)
        records = tuple(self.record(element, number) for number, element in enumerate(elements_of(step)))
        return replace(self.now, id=number, records=records)

    def clock(self, time: Any) -> int:
        """Return what the clock is set to, which comes to no end of time."""
        found = self.unit.instant(time, "`processing_time`")
        if found in (inf, -inf):
            raise wrong("`processing_time`", time, "a number: only a watermark ends")
        return int(found)

    def record(self, element: Mapping[str, Any], number: int) -> Record:
        """Return the record of one element."""
        with said_of(f"`elements`[{number}]"):
            return self.said(element)

    def said(self, element: Mapping[str, Any]) -> Record:
        """Return the record of what an element says."""
        self.offset += 1
        time = element.get("ts", element.get("timestamp"))
        event_time = self.now.clock if time is None else self.instant(time)
        fields = {
            "key": None if element.get("key") is None else str(element["key"]),
            "value": element.get("value"),
            "ts": event_time,
            "punctuation": any(flag_in(element, name, "") for name in ("punctuation", "punct")),
            "output_time": self.output_time(event_time),
        }
        return Record("elements", 0, self.offset, fields)

    def instant(self, time: Any) -> int:
        """Return an element's own time, which has neither end of time."""
        found = self.unit.at(time, "`ts`")
        if not abs(found) < FURTHEST:
            raise TranscriptError(f"{time!r} is no time of an element; write one of 64 bits")
        return int(found)

    def output_time(self, time: int) -> int | None:
        """Return the time that the element would give its pane; the earliest must not lie behind the watermark."""
        before = self.now.watermark if self.now.watermark is not None else -inf
        if self.stamp == "earliest" and time < before:
            return None
        return time + self.later


def elements_of(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the elements of a step; each has at most one key and one value."""
    found = objects_at(
        step.get("elements", []), "`elements`", "a list of objects, as in [{'ts': 1, 'value': 5}]"
    )
    for number, element in enumerate(found):
        refuse_misspelt(element, ELEMENT, f"`elements`[{number}]")
        for name in ("key", "value"):
            if not is_plain(element.get(name)):
                place = f"`elements`[{number}].{name}"
                raise wrong(place, element[name], "a number, a text, true, false or null")
    return found


def output_delay(case: Mapping[str, Any], unit: Unit) -> int:
    """Return by how much a case moves its elements' output times, where it asks for moved times."""
    window = case.get("window")
    moved = window.get("custom_output_time") if isinstance(window, Mapping) else None
    if moved is None or "TRANSFORMED" not in str(case.get("timestamp_combiner")):
        return 0
    try:
        return int(unit.of(int(str(moved).removeprefix("ts+"))))
    except ValueError as problem:
        raise wrong("window.custom_output_time", moved, "by how much later, as in 'ts+5'") from problem
