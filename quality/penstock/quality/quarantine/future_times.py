"""Says from when a record that is ahead of the clock is accepted: streams judge event times by their batch time."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.definition.phrases import format_duration
from penstock.engine.plan.stages import Plan
from penstock.ingestion.contracts import Contract
from penstock.ingestion.errors import IgnoredRecordError, InvalidRecordError

SECOND_MS = 1_000


@dataclass(frozen=True)
class StreamTimeLimit:
    """The field that a stream takes as event time, and how far it may be ahead of the batch time."""

    stream: str
    event_time: str
    max_future_skew_ms: int


@dataclass(frozen=True)
class FutureTimeJudge:
    """Judges event times as the streams that quarantine a record far ahead of the clock would do now."""

    contract: Contract
    limits: tuple[StreamTimeLimit, ...]
    now_ms: int
    decode: Callable[[bytes], object]
    """Decodes a value in the format of the topic, or in JSON."""

    def explain(self, value: bytes) -> str:
        """Return why a stream would quarantine this valid record, and until when; empty if none would."""
        try:
            record = self.decode(value)
        except (InvalidRecordError, IgnoredRecordError):
            return ""  # its other fault is the reason, or no stream reads it
        accepted_from: Mapping[StreamTimeLimit, int] = {
            limit: time - limit.max_future_skew_ms
            for limit in self.limits
            if (time := self._read_time(record, limit.event_time)) is not None
        }
        limit = max(accepted_from, key=lambda item: accepted_from[item], default=None)
        if limit is None or accepted_from[limit] <= self.now_ms:
            return ""
        skew_ms = accepted_from[limit] + limit.max_future_skew_ms - self.now_ms
        return (
            f"{limit.event_time} is {format_duration(skew_ms // SECOND_MS * SECOND_MS)} ahead of the clock, and "
            f"stream {limit.stream} accepts at most {format_duration(limit.max_future_skew_ms)}. "
            f"Replay it from {_format_time(accepted_from[limit])} on, or repair it"
        )

    def _read_time(self, record: object, field: str) -> int | None:
        """Return an event time in milliseconds; None if the contract has no such field, or the record no value."""
        for contract_field in self.contract.fields:
            if contract_field.name == field:
                value, convert = getattr(record, field), contract_field.parsed_type.stored_converter
                stored = value if convert is None or value is None else convert(value)
                return stored if isinstance(stored, int) else None
        return None


def list_time_limits(plans: Iterable[Plan], topic: str) -> tuple[StreamTimeLimit, ...]:
    """Return the limit of each stream that reads a topic and quarantines records far ahead of the clock."""
    return tuple(
        StreamTimeLimit(plan.name, source.event_time, source.watermark.max_future_skew)
        for plan in plans
        for source in plan.sources
        if topic_of(source) == topic
        and source.watermark.max_future_skew is not None
        and source.watermark.future_records == "quarantine"
    )


def _format_time(at_ms: int) -> str:
    """Return a time in whole seconds, not before the given one."""
    try:
        at = datetime.fromtimestamp(-(-at_ms // SECOND_MS), UTC)
    except (OverflowError, ValueError):  # after the year 9999
        return f"{at_ms} (epoch milliseconds)"
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
