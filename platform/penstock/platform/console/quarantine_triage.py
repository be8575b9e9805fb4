"""Groups the quarantined records of a topic by reason, each with a sample of the field and its value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from penstock.quality.quarantine.quarantine_state import QuarantineState
from penstock.quality.quarantine.quarantined_records import RecordOrigin
from penstock.quality.quarantine.record_status import QuarantineStatus, count_states

MAX_SAMPLE_CHARS = 80
_CODES_WITH_FIELD = ("missing_field", "wrong_type", "out_of_range", "unknown_field", "future_event_time")


@dataclass(frozen=True)
class ReasonGroup:
    """The records of one reason that streams refused, or that producers refused. The sample is the newest one."""

    reason: str
    origin: RecordOrigin
    states: Mapping[QuarantineState, int]
    sample: QuarantineStatus
    newest: datetime | None
    oldest: datetime | None

    @property
    def pending(self) -> int:
        """How many wait for a decision."""
        return self.states[QuarantineState.PENDING]

    @property
    def field(self) -> str:
        """The field that the reason names; empty if it names none."""
        return find_field(self.reason)

    @property
    def sample_value(self) -> str:
        """The value of that field in the sample, or else the start of the sample."""
        value = self.sample.record.value
        text = find_field_value(self.field, value) if self.field else ""
        text = text or (value or b"").decode("utf-8", "backslashreplace")
        return text if len(text) <= MAX_SAMPLE_CHARS else f"{text[: MAX_SAMPLE_CHARS - 1]}…"


def name_reason(status: QuarantineStatus) -> str:
    """Return the reason of a record without its details, to group by."""
    return status.record.reason.partition(" (")[0]


def find_field(reason: str) -> str:
    """Return the path of the field that a reason names; empty if it names none.

    >>> find_field("wrong_type:items[].price"), find_field("malformed"), find_field("check:positive_amount")
    ('items[].price', '', '')
    """
    code, _, path = reason.partition(":")
    return path if code in _CODES_WITH_FIELD else ""


def find_field_value(path: str, value: bytes | None) -> str:
    """Return the value of a field as JSON; empty if the record is no JSON, or the path leads into an array."""
    if value is None or "[]" in path:
        return ""
    try:
        current: Any = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    for name in path.split("."):
        if not isinstance(current, dict) or name not in current:
            return "absent"
        current = current[name]
    return msgspec.json.encode(current).decode()


def group_by_reason(statuses: Iterable[QuarantineStatus]) -> list[ReasonGroup]:
    """Return the groups of records, given the newest first; those with the most pending records come first."""
    by_reason: dict[tuple[str, RecordOrigin], list[QuarantineStatus]] = {}
    for status in statuses:
        by_reason.setdefault((name_reason(status), status.record.position.origin), []).append(status)
    groups = [_build_group(*key, members) for key, members in by_reason.items()]
    return sorted(groups, key=lambda group: (-group.pending, group.reason, group.origin))


def select_pending(
    statuses: Iterable[QuarantineStatus], reason: str, origin: RecordOrigin
) -> list[QuarantineStatus]:
    """Return the records of a group that wait for a decision."""
    return [
        status
        for status in statuses
        if status.state is QuarantineState.PENDING
        and name_reason(status) == reason
        and status.record.position.origin == origin
    ]


def _build_group(reason: str, origin: RecordOrigin, members: Sequence[QuarantineStatus]) -> ReasonGroup:
    pending = [status for status in members if status.state is QuarantineState.PENDING]
    times = [status.record.arrived_at for status in members if status.record.arrived_at is not None]
    return ReasonGroup(
        reason,
        origin,
        count_states(members),
        (pending or members)[0],
        max(times, default=None),
        min(times, default=None),
    )
