"""Decisions on quarantined records, and their replay."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.plan.stages import Plan
from penstock.ingestion.contracts import json_codec, load_contract
from penstock.ingestion.ledger import DeliveryAddress
from penstock.ingestion.producer import JsonChecker, SourceBatch, create_record_format
from penstock.ingestion.registry import FileRegistry
from penstock.ingestion.sources.source import make_replay, read_rest
from penstock.pipelines.catalog import load_plan
from penstock.quality.errors import QuarantineError
from penstock.quality.quarantine import replay as replay_module
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision
from penstock.quality.quarantine.future_times import FutureTimeJudge, StreamTimeLimit, list_time_limits
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordPosition, parse_position
from penstock.quality.quarantine.record_status import build_statuses, count_states
from penstock.quality.quarantine.replay import (
    ReplayDecisionSource,
    discard_decisions,
    judge_records,
    replay_decisions,
)
from penstock.quality.quarantine.replayed_records import ReplayedRecords

VALID = b'{"id":"1","device":"a","site":"s","at":1,"temperature":2.5}'


def quarantined_record(
    offset: int, value: bytes | None = b"?", partition: int = 0, *streams: str
) -> QuarantinedRecord:
    judges = tuple((stream, "v1") for stream in streams or ("minute",))
    return QuarantinedRecord(
        "sensors", RecordPosition(partition, offset), None, None, value, "malformed", judges
    )


def replay_decision(offset: int, value: bytes = VALID) -> QuarantineDecision:
    return QuarantineDecision("replayed", 0, offset, 5, "", value)


def test_only_the_first_decision_about_a_record_counts(tmp_path: Path) -> None:
    decisions = DecisionLog(tmp_path / "sensors.jsonl")
    assert decisions.record([replay_decision(1), replay_decision(2), replay_decision(1, b"other")]) == [
        replay_decision(1),
        replay_decision(2),
    ]
    replayed = [replay_decision(2), QuarantineDecision("discarded", 0, 1, 6), replay_decision(3)]
    assert decisions.record(replayed) == [replay_decision(3)]
    assert decisions.read_all() == [replay_decision(1), replay_decision(2), replay_decision(3)]


def test_concurrent_writers_decide_each_record_once(tmp_path: Path) -> None:
    def record_decisions(writer: int) -> list[QuarantineDecision]:
        return DecisionLog(tmp_path / "sensors.jsonl").record(
            [replay_decision(n, b"%d" % writer) for n in range(40)]
        )

    with ThreadPoolExecutor(8) as pool:
        recorded = [item for part in pool.map(record_decisions, range(8)) for item in part]
    assert sorted(item.offset for item in recorded) == list(range(40))
    assert DecisionLog(tmp_path / "sensors.jsonl").read_all() == recorded or len(recorded) == 40


@given(st.integers(0, 400))
def test_a_partially_written_decision_is_ignored(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "sensors.jsonl"
    DecisionLog(path).record([replay_decision(n) for n in range(4)])
    content = path.read_bytes()
    path.write_bytes(content[:cut])
    read_back = DecisionLog(path).read_all()
    assert read_back == [replay_decision(n) for n in range(content[:cut].count(b"\n"))]
    DecisionLog(path).record([replay_decision(n) for n in range(4)])
    assert DecisionLog(path).read_all() == [replay_decision(n) for n in range(4)]


def test_a_damaged_line_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "sensors.jsonl"
    path.write_text("nonsense\n", "utf-8")
    with pytest.raises(QuarantineError, match="restore it from a backup"):
        DecisionLog(path).read_all()


@given(kinds=st.lists(st.booleans(), max_size=30), first=st.integers(0, 12), size=st.integers(1, 7))
def test_decisions_are_replayed_from_every_position(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[bool], first: int, size: int
) -> None:
    decisions = DecisionLog(tmp_path_factory.mktemp("decided") / "sensors.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_module, "MAX_BATCH_RECORDS", size)
        all_decisions = [
            replay_decision(n, b"%d" % n) if sent else QuarantineDecision("discarded", 0, n, 5)
            for n, sent in enumerate(kinds)
        ]
        decisions.record(all_decisions[:first])
        source = ReplayDecisionSource(decisions)
        early = list(source.read(None))
        decisions.record(all_decisions[first:])
        expected = [decision.value for decision in all_decisions if decision.fate == "replayed"]
        assert [value for batch in source.read(None) for value in batch.values] == expected
        done = 0
        for batch in early:
            done += len(batch)
            rest = read_rest(source, batch.position, len(batch))
            assert [value for part in rest for value in part.values] == expected[done:]
            replayed = make_replay(source)
            assert replayed is not None
            batches: list[SourceBatch] = replayed(batch.position, 0, len(batch))
            assert [value for part in batches for value in part.values] == list(batch.values)


READ_RANGES = {"minute": {0: (0, 10)}, "hour": {0: (5, 8)}}


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (quarantined_record(7, VALID), "hour accepted it, so a replay would count it twice"),
        (quarantined_record(9, VALID), "stream hour has read up to offset 8 only, and would"),
        (quarantined_record(7, b"{", 0, "minute", "hour"), "it still violates the contract: "),
        (quarantined_record(9, b"{"), "it still violates the contract: "),
        (quarantined_record(3, None), "it has no value; repair or discard it"),
    ],
)  # fmt: skip
def test_an_unreplayable_record_is_refused_with_the_reason(item: QuarantinedRecord, reason: str) -> None:
    judged = judge_records([item], {}, JsonChecker(load_contract("sensors")), READ_RANGES)
    assert judged.accepted == ()
    assert judged.refused[0].reason.startswith(reason)


def test_a_repaired_record_is_judged_by_its_new_value() -> None:
    invalid, valid = quarantined_record(2, b"{"), quarantined_record(3, VALID)
    judged = judge_records(
        [invalid, valid], {RecordPosition(0, 2): VALID}, JsonChecker(load_contract("sensors")), READ_RANGES
    )
    assert judged.refused == ()
    assert [decision.value for decision in replay_decisions(judged, 5, "")] == [VALID, VALID]


def test_a_value_in_the_format_of_its_topic_is_replayed_as_it_is(tmp_path: Path) -> None:
    contract = replace(load_contract("sensors"), encoding="protobuf")
    record_format = create_record_format(contract, FileRegistry(tmp_path))
    value = record_format.checker.check(SourceBatch([VALID])).values[0]
    judge = FutureTimeJudge(contract, (StreamTimeLimit("day", "at", 5),), 100, record_format.decode_any)
    items = [quarantined_record(2, value), quarantined_record(3, value[:-3])]
    judged = judge_records(items, {}, record_format.checker, {}, future_times=judge)
    assert [value for _, value in judged.accepted] == [value]
    (damaged,) = judged.refused
    assert damaged.reason.startswith("it still violates the contract: malformed")
    early = FutureTimeJudge(contract, (StreamTimeLimit("day", "at", 0),), 0, record_format.decode_any)
    (refused,) = judge_records(items[:1], {}, record_format.checker, {}, future_times=early).refused
    assert refused.reason.startswith("at is ")


NOON = 1_767_268_800_000


@pytest.mark.parametrize(
    ("now_ms", "reason"),
    [
        (
            NOON - 86_400_000,
            (
                "at is 1 day ahead of the clock, and stream hour accepts at most 1 hour. "
                "Replay it from 2026-01-01 11:00:00 UTC on, or repair it"
            ),
        ),
        (NOON - 3_600_001, "at is 1 hour ahead of the clock"),
        (NOON - 3_600_000, ""),
    ],
)
def test_a_record_that_streams_would_quarantine_again_is_refused_until_its_time(
    now_ms: int, reason: str
) -> None:
    """It was sent, judged by the clock once more, and came back."""
    contract = load_contract("sensors")
    value = VALID.replace(b'"at":1,', b'"at":%d,' % NOON)
    limits = (StreamTimeLimit("day", "at", 86_400_000), StreamTimeLimit("hour", "at", 3_600_000))
    judge = FutureTimeJudge(contract, limits, now_ms, json_codec(contract).decode)
    item = quarantined_record(2, value, 0, "day", "hour")
    judged = judge_records([item], {}, JsonChecker(contract), {}, future_times=judge)
    assert "".join(refusal.reason for refusal in judged.refused).startswith(reason)
    assert bool(judged.accepted) is not bool(reason)
    repaired = judge_records([item], {item.position: VALID}, JsonChecker(contract), {}, future_times=judge)
    assert repaired.refused == ()


def test_the_limits_are_those_of_the_streams_that_quarantine() -> None:
    source = load_plan("sensor_minute").sources[0]

    def make_plan(name: str, **rule: Any) -> Plan:
        watermark = replace(source.watermark, **rule)
        return replace(load_plan("sensor_minute"), name=name, sources=(replace(source, watermark=watermark),))

    plans = [
        make_plan("limited", max_future_skew=5),
        make_plan("accepting", max_future_skew=5, future_records="accept"),
        make_plan("unlimited", max_future_skew=None),
    ]
    assert list_time_limits(plans, "sensors") == (StreamTimeLimit("limited", "at", 5),)
    assert list_time_limits(plans, "cards") == ()


def test_a_failed_check_is_refused_until_record_or_check_changes() -> None:
    checker = JsonChecker(load_contract("sensors"))
    item = QuarantinedRecord(
        "sensors", RecordPosition(0, 3), None, None, VALID, "check:warm", (("minute", "v1"), ("hour", "v2"))
    )

    def list_reasons(repaired: dict[RecordPosition, bytes], **versions: str) -> list[str]:
        return [refusal.reason for refusal in judge_records([item], repaired, checker, {}, versions).refused]

    reason = "it still fails the check warm; repair it or change the check"
    assert list_reasons({}, minute="v1", hour="v2") == [reason]
    assert list_reasons({item.position: VALID}, minute="v1", hour="v2") == []
    assert list_reasons({}, minute="v1", hour="v3") == []
    assert list_reasons({}, minute="v1") == []
    assert judge_records([item], {}, checker, {}).refused == ()


def test_every_record_has_a_status() -> None:
    records = [quarantined_record(n) for n in range(4)]
    decisions = [replay_decision(2), *discard_decisions([records[1]], 5, "why"), replay_decision(0)]
    arrived = DeliveryAddress(0, "sensors", 1, 77)
    statuses = build_statuses(records, decisions, {0: arrived})
    assert [item.state for item in statuses] == ["replaying", "discarded", "replayed", "pending"]
    assert statuses[2].address == arrived
    assert count_states(statuses) == {"pending": 1, "replaying": 1, "replayed": 1, "discarded": 1}


@pytest.mark.parametrize("text", ["1", "a:2", "1:", "-1:2", "1:2:3"])
def test_an_invalid_position_is_refused(text: str) -> None:
    with pytest.raises(QuarantineError, match="write PARTITION:OFFSET"):
        parse_position(text)


def test_replayed_records_are_listed_for_later_streams(tmp_path: Path) -> None:
    replayed_records = ReplayedRecords(tmp_path)
    ranges = (
        OffsetRange("sensors", 0, 2, 9),
        OffsetRange("sensors", 1, 0, 9),
        OffsetRange("clicks", 0, 0, 9),
    )
    assert replayed_records(ranges) == []
    decisions = DecisionLog(tmp_path / "sensors.jsonl")
    decisions.record(
        [
            replay_decision(1),
            replay_decision(2),
            QuarantineDecision("discarded", 0, 3, 5),
            QuarantineDecision("replayed", 1, 8, 5),
        ]
    )
    assert [(item.topic, item.partition, item.offset) for item in replayed_records(ranges)] == [
        ("sensors", 0, 2),
        ("sensors", 1, 8),
    ]
    decisions.record([replay_decision(8), replay_decision(9)])
    assert [(item.partition, item.offset, item.quarantine_reason) for item in replayed_records(ranges)][1] == (
        0, 8, "replayed: a record with a decision",
    )  # fmt: skip
