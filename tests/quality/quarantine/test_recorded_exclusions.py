"""A run over stored records excludes what the live stream has excluded, judged by the limit of today."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.engine.batch.excluded_records import ExcludedRecord
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.record_schemas import QUARANTINE_SCHEMA
from penstock.engine.plan.sources import FutureSkewPolicy
from penstock.engine.plan.stages import Plan
from penstock.quality.quarantine.quarantined_records import RecordPosition
from penstock.quality.quarantine.recorded_exclusions import RecordedExclusions
from penstock.stream import count, fixed, read

PLAN = read("sensors").key("device").aggregate(n=count()).window(fixed("1 minute")).write("t").to_plan("t")
AHEAD = "future_event_time:at (1h30m ahead of the clock, max_future_skew 10m)"
MINUTE_MS = 60_000
EVERYTHING = (OffsetRange("sensors", 0, 0, 100),)
ROWS = [
    (1, AHEAD, "t"),
    (2, "malformed", "t"),
    (3, AHEAD, "another"),
    (4, "future_event_time", "t"),  # as 0.1.0 wrote it
    (5, "left_out: by a replay", "t"),
]


def limit(max_future_skew: int | None, policy: FutureSkewPolicy = "quarantine") -> Plan:
    (source,) = PLAN.sources
    rule = replace(source.watermark, max_future_skew=max_future_skew, future_records=policy)
    return replace(PLAN, sources=(replace(source, watermark=rule),))


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    rows = [
        {"topic": "sensors", "partition": 0, "offset": offset, "reason": reason, "stream": stream}
        for offset, reason, stream in ROWS
    ]
    write_deltalake(tmp_path / "quarantine/sensors", pa.Table.from_pylist(rows, QUARANTINE_SCHEMA))
    return tmp_path


@pytest.mark.parametrize(
    ("plan", "offsets"),
    [
        (limit(10 * MINUTE_MS), [1, 4, 5]),
        (limit(90 * MINUTE_MS - 1), [1, 4, 5]),
        (limit(90 * MINUTE_MS), [4, 5]),
        (limit(10 * MINUTE_MS, "accept"), [5]),
        (limit(None), [5]),
    ],
    ids=["the same limit", "a larger one", "large enough", "accepted", "unlimited"],
)
def test_a_record_is_judged_by_how_far_it_was_ahead(warehouse: Path, plan: Plan, offsets: list[int]) -> None:
    found = RecordedExclusions(plan, warehouse, lambda _: ())(EVERYTHING)
    assert [record.offset for record in found] == offsets
    assert {record.quarantine_reason for record in found} <= {reason for _, reason, _ in ROWS}


def test_a_record_is_excluded_once_and_a_replayed_one_as_such(warehouse: Path) -> None:
    replayed = ExcludedRecord("sensors", 0, 1, "a record with a decision", "replayed")
    left_out = [("sensors", RecordPosition(0, 5)), ("sensors", RecordPosition(0, 7))]
    exclusions = RecordedExclusions(limit(10 * MINUTE_MS), warehouse, lambda _: (replayed,), left_out)
    found = {record.offset: record.quarantine_reason for record in exclusions(EVERYTHING)}
    left_out_reason = "left_out: by a replay"
    assert found == {
        1: replayed.quarantine_reason,
        4: "future_event_time",
        5: left_out_reason,
        7: left_out_reason,
    }
    in_part = exclusions((OffsetRange("sensors", 0, 5, 7), OffsetRange("sensors", 1, 0, 9)))
    assert [record.offset for record in in_part] == [1, 5]


def test_a_stream_without_a_quarantine_excludes_nothing(tmp_path: Path) -> None:
    assert RecordedExclusions(limit(None), tmp_path, lambda _: ())(EVERYTHING) == []
