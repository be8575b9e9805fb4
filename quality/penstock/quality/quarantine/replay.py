"""Sending quarantined records again: each that was decided on, once, through the producer that can prove it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.engine.spark.parse.row_checks import CHECK_REASON_PREFIX
from penstock.ingestion.producer import RecordChecker, SourceBatch
from penstock.ingestion.sources.source import ReplayableSource
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord

MAX_BATCH_RECORDS = 5_000


class ReplayDecisionSource(ReplayableSource):
    """The records that are to be sent again, in the order of decisions; a position is a byte of their file."""

    def __init__(self, decisions: DecisionLog) -> None:
        self.description = f"decisions in {decisions.path.name}"
        self._decisions = decisions

    def read(self, resume_position: Any | None) -> Iterator[SourceBatch]:
        """Yield what is to be sent from a position on, to the last decision that there is now."""
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
    """A record that is not sent again, and why."""

    record: QuarantinedRecord
    reason: str


@dataclass(frozen=True)
class ReplayJudgement:
    """Which records may be sent again, with the bytes that would be, and which may not."""

    accepted: tuple[tuple[QuarantinedRecord, bytes], ...]
    refused: tuple[RefusedReplay, ...]


StreamReach = Mapping[str, Mapping[int, tuple[int, int]]]
"""The streams that read a topic, and the offsets [first, end) that each has read of its partitions."""


def judge_records(
    records: Sequence[QuarantinedRecord],
    repaired_values: Mapping[Any, bytes],
    checker: RecordChecker,
    stream_reach: StreamReach,
    versions: Mapping[str, str] | None = None,
) -> ReplayJudgement:
    """Judge records as they are, or as they were repaired, by the contract of today; nothing is sent.

    A record is refused as long as any stream took it, or is still to read it: it would count there twice. So is one
    that broke a check and was not repaired, where each stream that refused it judges as it did: `versions` are
    those of the contract by which streams judge now.
    """
    refused: list[RefusedReplay] = []
    accepted: list[tuple[QuarantinedRecord, bytes]] = []
    for record in records:
        value = repaired_values.get(record.position, record.value)
        reason = _explain_taken(record, stream_reach) or _explain_invalid(value, checker)
        if not reason and record.position not in repaired_values:
            reason = _explain_same_check(record, versions or {})
        if reason or value is None:
            refused.append(RefusedReplay(record, reason))
        else:
            accepted.append((record, value))
    return ReplayJudgement(tuple(accepted), tuple(refused))


def replay_decisions(judgement: ReplayJudgement, now_ms: int, reason: str) -> list[QuarantineDecision]:
    """Return the decisions to send what is good."""
    return [
        QuarantineDecision(
            "replayed", record.position.partition, record.position.offset, now_ms, reason, value
        )
        for record, value in judgement.accepted
    ]


def discard_decisions(
    records: Sequence[QuarantinedRecord], now_ms: int, reason: str
) -> list[QuarantineDecision]:
    """Return the decisions to give records up."""
    return [QuarantineDecision("discarded", *record.position, now_ms, reason) for record in records]


def _explain_taken(record: QuarantinedRecord, stream_reach: StreamReach) -> str:
    for stream, partitions in sorted(stream_reach.items()):
        first, end = partitions.get(record.position.partition, (0, 0))
        if stream in record.streams or record.position.offset < first:
            continue
        if record.position.offset < end:
            return f"{stream} did not refuse it: sent again, it would count there twice"
        return f"{stream} has read up to offset {end} only, and may yet take it; wait until it has read the record"
    return ""


def _explain_invalid(value: bytes | None, checker: RecordChecker) -> str:
    if value is None:
        return "it has no value; repair it, or discard it"
    problem = checker.check(SourceBatch([value])).invalid.get(0)
    return "" if problem is None else f"it still breaks the contract: {problem}"


def _explain_same_check(record: QuarantinedRecord, versions: Mapping[str, str]) -> str:
    """A check is asked of the record alone: by the same version of the contract it says the same."""
    is_same_version = all(versions.get(stream) == version for stream, version in record.refusals)
    if not record.reason.startswith(CHECK_REASON_PREFIX) or not is_same_version:
        return ""
    check_name = record.reason.removeprefix(CHECK_REASON_PREFIX)
    return f"it still breaks the check {check_name}; repair it, or change the check"
