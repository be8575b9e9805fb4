"""Parsing of durations."""

from datetime import timedelta
from typing import Any

import pytest
from tests.pipelines.recorded_answers import load_recorded_document

from penstock.engine.definition.durations import to_milliseconds
from penstock.engine.errors import DefinitionError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 seconds", 10_000),
        ("1 minute", 60_000),
        ("90s", 90_000),
        ("1 hour 30 minutes", 5_400_000),
        ("1.5 hours", 5_400_000),
        ("250 ms", 250),
        ("2 weeks", 1_209_600_000),
        (1_500, 1_500),
        (timedelta(seconds=3), 3_000),
        ("0 seconds", 0),
    ],
)
def test_a_duration_is_read(text: Any, expected: int) -> None:
    assert to_milliseconds(text, "field") == expected


@pytest.mark.parametrize(
    "wrong", ["", "soon", "10", "-1 second", "1 foo", "1 second ago", "0.1 ms", -5, True, None, 1.5]
)
def test_an_invalid_duration_is_refused(wrong: Any) -> None:
    with pytest.raises(DefinitionError, match=r"Write a number and a unit|0 or more"):
        to_milliseconds(wrong, "field")


def test_spark_delays_of_fixed_length_are_parsed_alike() -> None:
    table = load_recorded_document("spark/spark_watermark.json")["delay_threshold_table"]
    for row in table["valid"]:
        for text in row["texts"]:
            plain = not any(word in text.lower() for word in ("interval", "month", "year"))
            if plain:
                assert to_milliseconds(text, "field") == row["ms"], text
    for text in [*table["invalid"], *table["negative_rejected"]]:
        with pytest.raises(DefinitionError):
            to_milliseconds(text, "field")
