"""Decisions on quarantined records: each taken once, whoever takes it and whenever they are killed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.batch.intent import OffsetRange
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.ledger import DeliveryAddress
from penstock.ingestion.producer import JsonChecker, SourceBatch
from penstock.ingestion.sources.source import make_replay, read_rest
from penstock.quality.errors import QuarantineError
from penstock.quality.quarantine import replay
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordPosition, parse_position
from penstock.quality.quarantine.record_status import build_statuses, count_states
from penstock.quality.quarantine.replay import (
    ReplayDecisionSource,
    discard_decisions,
    judge_records,
    replay_decisions,
)
from penstock.quality.quarantine.replayed_records import ReplayedRecords

GOOD = b'{"id":"1","device":"a","site":"s","at":1,"temperature":2.5}'


def record(offset: int, value: bytes | None = b"?", partition: int = 0, *streams: str) -> QuarantinedRecord:
    judges = tuple((stream, "v1") for stream in streams or ("minute",))
    return QuarantinedRecord(
        "sensors", RecordPosition(partition, offset), None, None, value, "malformed", judges
    )


def send(offset: int, value: bytes = GOOD) -> QuarantineDecision:
    return QuarantineDecision("replayed", 0, offset, 5, "", value)


def test_a_record_is_decided_on_once(tmp_path: Path) -> None:
    decisions = DecisionLog(tmp_path / "sensors.jsonl")
    assert decisions.record([send(1), send(2), send(1, b"other")]) == [send(1), send(2)]
    again = [send(2), QuarantineDecision("discarded", 0, 1, 6), send(3)]
    assert decisions.record(again) == [send(3)]
    assert decisions.read_all() == [send(1), send(2), send(3)]


def test_of_many_who_decide_at_once_one_is_heard_for_each_record(tmp_path: Path) -> None:
    def take(who: int) -> list[QuarantineDecision]:
        return DecisionLog(tmp_path / "sensors.jsonl").record([send(n, b"%d" % who) for n in range(40)])

    with ThreadPoolExecutor(8) as pool:
        taken = [one for part in pool.map(take, range(8)) for one in part]
    assert sorted(one.offset for one in taken) == list(range(40))
    assert DecisionLog(tmp_path / "sensors.jsonl").read_all() == taken or len(taken) == 40


@given(st.integers(0, 400))
def test_what_a_killed_writer_left_half_written_was_not_decided(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "sensors.jsonl"
    DecisionLog(path).record([send(n) for n in range(4)])
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    left = DecisionLog(path).read_all()
    assert left == [send(n) for n in range(whole[:cut].count(b"\n"))]
    DecisionLog(path).record([send(n) for n in range(4)])
    assert DecisionLog(path).read_all() == [send(n) for n in range(4)]


def test_a_damaged_line_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "sensors.jsonl"
    path.write_text("nonsense\n", "utf-8")
    with pytest.raises(QuarantineError, match="restore it from a backup"):
        DecisionLog(path).read_all()


@given(kinds=st.lists(st.booleans(), max_size=30), first=st.integers(0, 12), size=st.integers(1, 7))
def test_from_every_position_the_same_records_follow(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[bool], first: int, size: int
) -> None:
    decisions = DecisionLog(tmp_path_factory.mktemp("decided") / "sensors.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "MAX_BATCH_RECORDS", size)
        wanted = [
            send(n, b"%d" % n) if sent else QuarantineDecision("discarded", 0, n, 5)
            for n, sent in enumerate(kinds)
        ]
        decisions.record(wanted[:first])
        source = ReplayDecisionSource(decisions)
        early = list(source.read(None))
        decisions.record(wanted[first:])
        expected = [decision.value for decision in wanted if decision.fate == "replayed"]
        assert [value for batch in source.read(None) for value in batch.values] == expected
        done = 0
        for batch in early:
            done += len(batch)
            rest = read_rest(source, batch.position, len(batch))
            assert [value for part in rest for value in part.values] == expected[done:]
            again = make_replay(source)
            assert again is not None
            found: list[SourceBatch] = again(batch.position, 0, len(batch))
            assert [value for part in found for value in part.values] == list(batch.values)


REACHED = {"minute": {0: (0, 10)}, "hour": {0: (5, 8)}}


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (record(7, GOOD), "hour accepted it, so a replay would count it twice"),
        (record(9, GOOD), "hour has read only up to offset 8; wait until it has read"),
        (record(7, b"{", 0, "minute", "hour"), "it still violates the contract: "),
        (record(3, None), "it has no value; repair or discard it"),
    ],
)  # fmt: skip
def test_a_record_that_may_not_be_sent_again_is_refused_with_the_reason(
    one: QuarantinedRecord, why: str
) -> None:
    judged = judge_records([one], {}, JsonChecker(load_contract("sensors")), REACHED)
    assert judged.accepted == ()
    assert judged.refused[0].reason.startswith(why)


def test_a_record_is_judged_as_it_was_repaired() -> None:
    broken, fine = record(2, b"{"), record(3, GOOD)
    judged = judge_records(
        [broken, fine], {RecordPosition(0, 2): GOOD}, JsonChecker(load_contract("sensors")), REACHED
    )
    assert judged.refused == ()
    assert [decision.value for decision in replay_decisions(judged, 5, "")] == [GOOD, GOOD]


def test_a_record_that_broke_a_check_is_refused_until_it_is_repaired_or_judged_otherwise() -> None:
    checker = JsonChecker(load_contract("sensors"))
    one = QuarantinedRecord(
        "sensors", RecordPosition(0, 3), None, None, GOOD, "check:warm", (("minute", "v1"), ("hour", "v2"))
    )

    def refused(repaired: dict[RecordPosition, bytes], **versions: str) -> list[str]:
        return [each.reason for each in judge_records([one], repaired, checker, {}, versions).refused]

    why = "it still fails the check warm; repair it or change the check"
    assert refused({}, minute="v1", hour="v2") == [why]
    assert refused({one.position: GOOD}, minute="v1", hour="v2") == []
    assert refused({}, minute="v1", hour="v3") == []
    assert refused({}, minute="v1") == []
    assert judge_records([one], {}, checker, {}).refused == ()


def test_every_record_stands_somewhere() -> None:
    records = [record(n) for n in range(4)]
    decisions = [send(2), *discard_decisions([records[1]], 5, "why"), send(0)]
    arrived = DeliveryAddress(0, "sensors", 1, 77)
    found = build_statuses(records, decisions, {0: arrived})
    assert [one.state for one in found] == ["replaying", "discarded", "replayed", "pending"]
    assert found[2].address == arrived
    assert count_states(found) == {"pending": 1, "replaying": 1, "replayed": 1, "discarded": 1}


@pytest.mark.parametrize("text", ["1", "a:2", "1:", "-1:2", "1:2:3"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(QuarantineError, match="write PARTITION:OFFSET"):
        parse_position(text)


def test_a_stream_that_comes_later_is_told_what_was_sent_again(tmp_path: Path) -> None:
    told = ReplayedRecords(tmp_path)
    spans = (OffsetRange("sensors", 0, 2, 9), OffsetRange("sensors", 1, 0, 9), OffsetRange("clicks", 0, 0, 9))
    assert told(spans) == []
    decisions = DecisionLog(tmp_path / "sensors.jsonl")
    decisions.record(
        [send(1), send(2), QuarantineDecision("discarded", 0, 3, 5), QuarantineDecision("replayed", 1, 8, 5)]
    )
    assert [(one.topic, one.partition, one.offset) for one in told(spans)] == [
        ("sensors", 0, 2),
        ("sensors", 1, 8),
    ]
    decisions.record([send(8), send(9)])
    assert [(one.partition, one.offset, one.quarantine_reason) for one in told(spans)][1] == (
        0, 8, "replayed: a record with a decision",
    )  # fmt: skip
