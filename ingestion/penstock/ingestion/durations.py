"""Durations of a contract, whose errors are errors of the contract."""

from penstock.core import duration
from penstock.core.errors import DurationError
from penstock.ingestion.errors import ContractError


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of a duration such as `90 seconds`; raise ContractError for any other text."""
    try:
        return duration.parse_duration_ms(text)
    except DurationError as error:
        raise ContractError(str(error)) from None
