"""Parses the `steps` of a case into batches of elements, watermarks and clock times."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

from penstock.conformance.aggregate_parser import parse_timestamp_combiner
from penstock.conformance.field_validation import (
    invalid_field_error,
    is_scalar,
    parse_flag,
    prefix_errors,
    refuse_misspelled_fields,
    require_objects,
)
from penstock.conformance.reference import InputBatch, InputRecord
from penstock.conformance.time_units import MAX_TIME_MS, TimeUnit
from penstock.engine.errors import TranscriptError

ELEMENT_FIELDS = ("key", "value", "ts", "timestamp", "punctuation", "punct")
"""The fields that an element may have."""


class StepParser:
    """Turns steps into batches. The clock and the watermark keep their last value, and never go back."""

    MOVE_FIELDS = frozenset({"elements", "watermark", "processing_time"})

    def __init__(self, unit: TimeUnit, case: Mapping[str, Any]) -> None:
        self.unit = unit
        self.timestamp_combiner = parse_timestamp_combiner(case)
        self.output_delay_ms = parse_output_delay(case, unit)
        self.current = InputBatch(0, 0, watermark=-inf)
        self.offset = 0

    def parse_batches(self, steps: Iterable[Mapping[str, Any]]) -> list[InputBatch]:
        """Return a batch for each step that moves the run."""
        parsed: list[InputBatch] = []
        for number, step in enumerate(steps, 1):
            if self.is_move(step):
                with prefix_errors(f"step {number}"):
                    parsed.append(self.parse_batch(len(parsed), step))
        return parsed

    def is_move(self, step: Mapping[str, Any]) -> bool:
        """Tell whether the step brings elements, a watermark or a clock time."""
        return bool(step.keys() & self.MOVE_FIELDS)

    def parse_batch(self, number: int, step: Mapping[str, Any]) -> InputBatch:
        """Return the batch of one step."""
        if "processing_time" in step:
            self.current = replace(
                self.current, clock=max(self.current.clock, self.parse_clock(step["processing_time"]))
            )
        if "watermark" in step:
            watermark_before = -inf if self.current.watermark is None else self.current.watermark
            watermark = max(watermark_before, self.unit.parse_instant(step["watermark"], "`watermark`"))
            self.current = replace(self.current, watermark=watermark, is_last=watermark == inf)
        records = tuple(
            self.parse_record(element, number) for number, element in enumerate(parse_elements(step))
        )
        return replace(self.current, id=number, records=records)

    def parse_clock(self, time: Any) -> int:
        """Return the clock time. The clock never reaches infinity."""
        clock_ms = self.unit.parse_instant(time, "`processing_time`")
        if clock_ms in (inf, -inf):
            raise invalid_field_error(
                "`processing_time`", time, "a finite number; only a watermark can be inf"
            )
        return int(clock_ms)

    def parse_record(self, element: Mapping[str, Any], number: int) -> InputRecord:
        """Return the record of one element."""
        with prefix_errors(f"`elements`[{number}]"):
            return self.build_record(element)

    def build_record(self, element: Mapping[str, Any]) -> InputRecord:
        """Return the record with the fields of an element."""
        self.offset += 1
        time = element.get("ts", element.get("timestamp"))
        event_time = self.current.clock if time is None else self.parse_event_time(time)
        fields = {
            "key": None if element.get("key") is None else str(element["key"]),
            "value": element.get("value"),
            "ts": event_time,
            "punctuation": any(parse_flag(element, name, "") for name in ("punctuation", "punct")),
            "output_time": self.compute_output_time(event_time),
        }
        return InputRecord("elements", 0, self.offset, fields)

    def parse_event_time(self, time: Any) -> int:
        """Return the event time of an element, which must be finite."""
        time_ms = self.unit.parse_time(time, "`ts`")
        if not abs(time_ms) < MAX_TIME_MS:
            raise TranscriptError(f"{time!r} is not a valid event time; write a 64-bit number")
        return int(time_ms)

    def compute_output_time(self, time: int) -> int | None:
        """Return the output time of an element; the earliest must not be before the watermark."""
        watermark_before = self.current.watermark if self.current.watermark is not None else -inf
        if self.timestamp_combiner == "earliest" and time < watermark_before:
            return None
        return time + self.output_delay_ms


def parse_elements(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the elements of a step. Each has at most one key and one value."""
    elements = require_objects(
        step.get("elements", []), "`elements`", "a list of objects, such as [{'ts': 1, 'value': 5}]"
    )
    for number, element in enumerate(elements):
        refuse_misspelled_fields(element, ELEMENT_FIELDS, f"`elements`[{number}]")
        for name in ("key", "value"):
            if not is_scalar(element.get(name)):
                path = f"`elements`[{number}].{name}"
                raise invalid_field_error(path, element[name], "a number, a string, true, false or null")
    return elements


def parse_output_delay(case: Mapping[str, Any], unit: TimeUnit) -> int:
    """Return the delay of output times, if the case moves them."""
    window = case.get("window")
    output_time = window.get("custom_output_time") if isinstance(window, Mapping) else None
    if output_time is None or "TRANSFORMED" not in str(case.get("timestamp_combiner")):
        return 0
    try:
        return int(unit.to_milliseconds(int(str(output_time).removeprefix("ts+"))))
    except ValueError as problem:
        raise invalid_field_error(
            "window.custom_output_time", output_time, "a delay, such as 'ts+5'"
        ) from problem
