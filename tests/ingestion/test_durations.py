"""Durations of contracts and feeds."""

import pytest

from penstock.ingestion.durations import parse_duration_ms
from penstock.ingestion.errors import ContractError


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10 seconds", 10_000), ("1ms", 1), ("7 d", 604_800_000), ("2 weeks", 1_209_600_000)],
)
def test_durations_are_parsed(text: str, expected: int):
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize("text", ["ten seconds", "10", "10 parsecs", ""])
def test_an_invalid_duration_is_refused(text: str):
    with pytest.raises(ContractError, match=r"not a duration|unknown unit"):
        parse_duration_ms(text)
