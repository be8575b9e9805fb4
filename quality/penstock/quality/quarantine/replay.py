"""Replays quarantined records: each is sent once, by a producer that proves its delivery."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.engine.spark.parse.row_checks import CHECK_REASON_PREFIX
from penstock.ingestion.producer import RecordChecker, SourceBatch
from penstock.ingestion.sources.source import ReplayableSource
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision
from penstock.quality.quarantine.future_times import FutureTimeJudge
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord

MAX_BATCH_RECORDS = 5_000


class ReplayDecisionSource(ReplayableSource):
    """The records to send, in the order of their decisions. A position is a byte offset of the decision log."""

    def __init__(self, decisions: DecisionLog) -> None:
        self.description = f"decisions in {decisions.path.name}"
        self._decisions = decisions

    def read(self, resume_position: Any | None) -> Iterator[SourceBatch]:
        """Yield the records to send from a position to the last decision."""
        start_byte = 0 if resume_position is None else int(resume_position["byte"])
        values: list[bytes] = []
        for decision, end_byte in self._decisions.read_lines(start_byte):
            if decision.fate == "replayed":
                values.append(decision.value)
            if len(values) == MAX_BATCH_RECORDS:
                yield SourceBatch(values, {"byte": start_byte})
                values, start_byte = [], end_byte
        if values:
            yield SourceBatch(values, {"byte": start_byte})


@dataclass(frozen=True)
class RefusedReplay:
    """A record that cannot be replayed, with the reason."""

    record: QuarantinedRecord
    reason: str


@dataclass(frozen=True)
class ReplayJudgement:
    """The records that can be replayed, with the bytes to send, and those that cannot."""

    accepted: tuple[tuple[QuarantinedRecord, bytes], ...]
    refused: tuple[RefusedReplay, ...]


StreamReach = Mapping[str, Mapping[int, tuple[int, int]]]
"""The streams that read a topic, with the offsets [first, end) that each has read per partition."""


def judge_records(
    records: Sequence[QuarantinedRecord],
    repaired_values: Mapping[Any, bytes],
    checker: RecordChecker,
    stream_reach: StreamReach,
    versions: Mapping[str, str] | None = None,
    future_times: FutureTimeJudge | None = None,
) -> ReplayJudgement:
    """Check records, original or repaired, against the current contract. Sends nothing.

    A record is refused if a stream accepted it or has yet to read it, because it would count twice. A record that
    failed a check is refused if it is not repaired and the contract of a stream that rejected it has not changed;
    `versions` are the current contract versions of streams. `future_times` refuses records that a stream would
    quarantine again because they are ahead of the clock.
    """
    refused: list[RefusedReplay] = []
    accepted: list[tuple[QuarantinedRecord, bytes]] = []
    for record in records:
        value = repaired_values.get(record.position, record.value)
        is_repaired = record.position in repaired_values
        reason = (
            _explain_truncated(record, is_repaired=is_repaired)
            or _explain_invalid(value, checker)
            or _explain_future_time(value, future_times)
            or _explain_taken(record, stream_reach)
        )
        if not reason and not is_repaired:
            reason = _explain_same_check(record, versions or {})
        if reason or value is None:
            refused.append(RefusedReplay(record, reason))
        else:
            accepted.append((record, value))
    return ReplayJudgement(tuple(accepted), tuple(refused))


def replay_decisions(judgement: ReplayJudgement, now_ms: int, reason: str) -> list[QuarantineDecision]:
    """Return decisions to send the accepted records."""
    return [
        QuarantineDecision(
            "replayed", record.position.partition, record.position.offset, now_ms, reason, value
        )
        for record, value in judgement.accepted
    ]


def discard_decisions(
    records: Sequence[QuarantinedRecord], now_ms: int, reason: str
) -> list[QuarantineDecision]:
    """Return decisions to discard records."""
    return [
        QuarantineDecision("discarded", record.position.partition, record.position.offset, now_ms, reason)
        for record in records
    ]


def _explain_truncated(record: QuarantinedRecord, *, is_repaired: bool) -> str:
    if is_repaired or not record.is_truncated:
        return ""
    return "the dead letter has only the first bytes of the record; repair or discard it"


def _explain_taken(record: QuarantinedRecord, stream_reach: StreamReach) -> str:
    if record.position.is_dead_letter:
        return ""  # it never was in the topic, so no stream has read it
    for stream, partitions in sorted(stream_reach.items()):
        first, end = partitions.get(record.position.partition, (0, 0))
        if stream in record.streams or record.position.offset < first:
            continue
        if record.position.offset < end:
            return f"{stream} accepted it, so a replay would count it twice"
        return (
            f"stream {stream} has read up to offset {end} only, and would count it twice. Replay it when the "
            f"stream has read it: `penstock status {stream}` says whether it runs"
        )
    return ""


def _explain_invalid(value: bytes | None, checker: RecordChecker) -> str:
    if value is None:
        return "it has no value; repair or discard it"
    problem = checker.check(SourceBatch([value])).invalid.get(0)
    return "" if problem is None else f"it still violates the contract: {problem}"


def _explain_future_time(value: bytes | None, judge: FutureTimeJudge | None) -> str:
    return "" if value is None or judge is None else judge.explain(value)


def _explain_same_check(record: QuarantinedRecord, versions: Mapping[str, str]) -> str:
    """Explain that the check would fail again: the same contract version gives the same verdict."""
    is_same_version = all(versions.get(stream) == version for stream, version in record.refusals)
    if not record.reason.startswith(CHECK_REASON_PREFIX) or not is_same_version:
        return ""
    check_name = record.reason.removeprefix(CHECK_REASON_PREFIX)
    return f"it still fails the check {check_name}; repair it or change the check"
