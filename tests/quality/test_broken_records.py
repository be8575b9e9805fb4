"""One record in a hundred is broken, in ten ways: each is accounted for by its address."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.engine.spark.running import send
from tests.quality.audit.stream import MINUTE, NOON, Lived, states

from penstock.infra.local_broker import LocalBroker
from penstock.quality.expectations.suite import SUITES_FOLDER
from penstock.quality.quarantine.quarantined_records import RecordPosition, read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
RECORDS, GOOD_BETWEEN = 5_000, 99
GOOD = {"id": "x", "device": "d", "site": "s", "at": NOON, "temperature": 1.0, "humidity": 50.0}
YEARS = 9_999 * 366 * 86_400_000


def text(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


KINDS: list[tuple[bytes | None, str]] = [
    (text()[:-1], "malformed"),
    (text(at="noon"), "malformed"),
    (b"[1, 2]", "malformed"),
    (b"\xff\xfe\x00", "malformed"),
    (None, "no_value"),
    (text(device=None), "missing_field:device"),
    (json.dumps({"id": "x", "device": "d", "site": "s"}).encode(), "missing_field:at"),
    (text(at=YEARS), "event_time_out_of_range"),
    (text(at=NOON + 90 * MINUTE), "future_event_time"),
    (text(temperature=900.0), "check:temperature_values_to_be_between"),
]


def test_each_of_ten_kinds_of_broken_records_is_found_by_its_address(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    (tmp_path / "suites" / "topics").mkdir(parents=True)
    shutil.copy(SUITES_FOLDER / "topics" / "sensors.yaml", tmp_path / "suites" / "topics" / "tenkinds.yaml")
    lived = Lived(spark, broker, "tenkinds", tmp_path / "stream", suites=tmp_path / "suites")
    broker.create_topic("tenkinds", 3)
    running = lived.open()
    expected: dict[RecordPosition, tuple[bytes | None, str]] = {}
    sent: list[list[bytes | None]] = [[], [], []]
    for number in range(RECORDS // (GOOD_BETWEEN + 1)):
        partition = number % 3
        value, reason = KINDS[number % len(KINDS)]
        times = (NOON - MINUTE * (number % 2) + n for n in range(GOOD_BETWEEN))
        sent[partition] += [text(id=f"{number}-{n}", at=at) for n, at in enumerate(times)]
        expected[RecordPosition(partition, len(sent[partition]))] = (value, reason)
        sent[partition].append(value)
    for partition, records in enumerate(sent):
        send(broker, "tenkinds", records, partition)
    running.until_read(RECORDS)
    found = {
        record.position: (record.value, record.reason)
        for record in read_quarantine(lived.warehouse, "tenkinds")
    }
    assert found == expected
    lived.archive()
    report = lived.audit()
    assert states(report)["accounts"] == "passed"
    said = {verdict.check: verdict.summary for verdict in report.verdicts}
    assert (
        said["accounts"] == "5,000 read = 4,950 folded + 0 late + 50 quarantined + 0 duplicate + 0 filtered"
    )
    assert all(verdict.state != "failed" for verdict in report.verdicts), report.verdicts
    told = running.table("checks/minutes").to_pylist()
    assert sum(row["records"] for row in told) == 5
    assert {row["check"] for row in told} == {"temperature_values_to_be_between"}
