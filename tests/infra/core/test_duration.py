"""The grammar of durations in contracts, pipelines, settings and options."""

import pytest

from penstock.core.duration import UNITS_MS, parse_duration_ms
from penstock.core.errors import DurationError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250 ms", 250),
        ("10s", 10_000),
        ("10 Seconds", 10_000),
        ("5 m", 300_000),
        ("5 min", 300_000),
        ("1h30m", 5_400_000),
        ("1 hour 30 minutes", 5_400_000),
        ("1.5 hours", 5_400_000),
        ("1 d", 86_400_000),
        ("7d", 604_800_000),
        ("2 weeks", 1_209_600_000),
        ("30 secs", 30_000),
        ("5 mins", 300_000),
        ("2hrs", 7_200_000),
        ("500 millis", 500),
        ("250 msec", 250),
        ("1 wk", 604_800_000),
        ("0 seconds", 0),
        ("PT1H30M", 5_400_000),
        ("P1DT2H", 93_600_000),
        ("pt0.5s", 500),
        ("P1W", 604_800_000),
    ],
)
def test_each_notation_of_a_duration_is_parsed(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds
    assert parse_duration_ms(f"  {text}\t") == milliseconds


@pytest.mark.parametrize("unit", [name for name in UNITS_MS if len(name) > 2])
def test_a_long_unit_may_be_plural(unit: str) -> None:
    assert parse_duration_ms(f"3 {unit}s") == parse_duration_ms(f"3 {unit}") == 3 * UNITS_MS[unit]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "10",
        "soon",
        "-1 s",
        "1 second ago",
        "P",
        "PT",
        "P1DT",
        "P1Y",
        "PT1.1.1S",
        "1,5 h",
        "9" * 5_000,
    ],
)
def test_any_other_text_is_refused_with_examples(text: str) -> None:
    with pytest.raises(DurationError, match=r"is not a duration\. Write a number and a unit, such as '10s'"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "suggestion"), [("10 secnds", "seconds"), ("5 mintues", "minutes"), ("1 dys", "days")]
)
def test_an_unknown_unit_is_refused_with_the_nearest_one(text: str, suggestion: str) -> None:
    with pytest.raises(DurationError, match=f"has an unknown unit .*. Did you mean '{suggestion}'"):
        parse_duration_ms(text)


@pytest.mark.parametrize("unit", ["month", "months", "year"])
def test_a_unit_without_a_fixed_length_is_refused(unit: str) -> None:
    with pytest.raises(DurationError, match=r"has no fixed length\. Write days, as in '30 days'"):
        parse_duration_ms(f"1 {unit}")


def test_a_fraction_of_a_millisecond_is_refused() -> None:
    with pytest.raises(DurationError, match="is not a whole number of milliseconds"):
        parse_duration_ms("0.1 ms")
