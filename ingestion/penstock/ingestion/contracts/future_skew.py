"""The max future skew of a contract: how far ahead of the clock the event time of a record may be."""

from typing import Final, Literal

from penstock.core.duration import parse_duration_ms
from penstock.core.errors import DurationError
from penstock.ingestion.errors import ContractError

Unlimited = Literal["unlimited"]
UNLIMITED: Final[Unlimited] = "unlimited"
FutureSkewLimit = int | Unlimited
"""A limit in milliseconds, or `unlimited` for topics whose event times lie in the future, such as bookings."""


def parse_future_skew(text: str) -> FutureSkewLimit:
    """Parse a duration or `unlimited`; raise ContractError for any other text."""
    if text == UNLIMITED:
        return UNLIMITED
    try:
        return parse_duration_ms(text)
    except DurationError as error:
        raise ContractError(f"max_future_skew: {error}, or 'unlimited'.") from None
