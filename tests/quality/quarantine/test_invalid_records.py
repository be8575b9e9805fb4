"""Ten kinds of invalid records in a stream, each quarantined with its position and reason."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.engine.spark.stream_runner import send
from tests.quality.audit.audited_stream import MINUTE, NOON, AuditedStream, find_states

from penstock.infra.local_broker import LocalBroker
from penstock.quality.expectations.suite import SUITES_FOLDER
from penstock.quality.quarantine.quarantined_records import RecordPosition, read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
RECORD_COUNT, VALID_BETWEEN = 5_000, 99
VALID = {"id": "x", "device": "d", "site": "s", "at": NOON, "temperature": 1.0, "humidity": 50.0}
FAR_FUTURE_MS = 9_999 * 366 * 86_400_000


def encode(**changes: Any) -> bytes:
    return json.dumps({**VALID, **changes}).encode()


INVALID_KINDS: list[tuple[bytes | None, str]] = [
    (encode()[:-1], "malformed"),
    (encode(at="noon"), "wrong_type:at"),
    (b"[1, 2]", "malformed"),
    (b"\xff\xfe\x00", "malformed"),
    (None, "no_value"),
    (encode(device=None), "missing_field:device"),
    (json.dumps({"id": "x", "device": "d", "site": "s"}).encode(), "missing_field:at"),
    (encode(at=FAR_FUTURE_MS), "event_time_out_of_range"),
    (encode(at=NOON + 90 * MINUTE), "future_event_time:at (1h30m ahead of the clock, max_future_skew 1h)"),
    (encode(temperature=900.0), "check:temperature_values_to_be_between"),
]


def test_each_kind_of_invalid_record_is_quarantined_by_its_position(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    (tmp_path / "suites" / "topics").mkdir(parents=True)
    shutil.copy(SUITES_FOLDER / "topics" / "sensors.yaml", tmp_path / "suites" / "topics" / "tenkinds.yaml")
    stream = AuditedStream(spark, broker, "tenkinds", tmp_path / "stream", suites=tmp_path / "suites")
    broker.create_topic("tenkinds", 3)
    running = stream.open()
    expected: dict[RecordPosition, tuple[bytes | None, str]] = {}
    sent: list[list[bytes | None]] = [[], [], []]
    for number in range(RECORD_COUNT // (VALID_BETWEEN + 1)):
        partition = number % 3
        value, reason = INVALID_KINDS[number % len(INVALID_KINDS)]
        times = (NOON - MINUTE * (number % 2) + n for n in range(VALID_BETWEEN))
        sent[partition] += [encode(id=f"{number}-{n}", at=at) for n, at in enumerate(times)]
        expected[RecordPosition(partition, len(sent[partition]))] = (value, reason)
        sent[partition].append(value)
    for partition, records in enumerate(sent):
        send(broker, "tenkinds", records, partition)
    running.run_until_read(RECORD_COUNT)
    quarantined = {
        record.position: (record.value, record.reason)
        for record in read_quarantine(stream.warehouse, "tenkinds")
    }
    assert quarantined == expected
    stream.archive()
    report = stream.audit()
    assert find_states(report)["accounts"] == "passed"
    summaries = {verdict.check: verdict.summary for verdict in report.verdicts}
    assert (
        summaries["accounts"]
        == "5,000 read = 4,950 accepted + 0 late + 50 quarantined + 0 duplicate + 0 filtered"
    )
    assert all(verdict.state != "failed" for verdict in report.verdicts), report.verdicts
    check_rows = running.table("checks/minutes").to_pylist()
    assert sum(row["records"] for row in check_rows) == 5
    assert {row["check"] for row in check_rows} == {"temperature_values_to_be_between"}
