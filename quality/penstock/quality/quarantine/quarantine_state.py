"""The states of a quarantined record."""

from enum import StrEnum


class QuarantineState(StrEnum):
    """The state of a quarantined record.

    PENDING waits for a decision. REPLAYING is decided and not yet delivered. REPLAYED is delivered to the topic
    again. DISCARDED is never sent again.
    """

    PENDING = "pending"
    REPLAYING = "replaying"
    REPLAYED = "replayed"
    DISCARDED = "discarded"
