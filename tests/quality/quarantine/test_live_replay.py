"""Quarantined records, repaired and replayed while the stream runs."""

import dataclasses
import json
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from tests.quality.audit.audited_stream import MINUTE, NOON, AuditedStream

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.feed import Feed, FeedSummary
from penstock.ingestion.producer.record_serde import create_record_format
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.runner import run_audit
from penstock.quality.audit.verdict import AuditReport
from penstock.quality.quarantine.decisions import DecisionLog
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordPosition, read_quarantine
from penstock.quality.quarantine.replay import (
    ReplayDecisionSource,
    discard_decisions,
    judge_records,
    replay_decisions,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORD_COUNT, LATER_COUNT = 6_000, 1_000
"""The later records move the watermark beyond the windows of the repaired ones."""


class RepairedStream(AuditedStream):
    """A stream with decisions about its quarantine."""

    @property
    def quarantined(self) -> dict[str, QuarantinedRecord]:
        """The quarantined records by the first word of their reason."""
        return {record.reason.split(":")[0]: record for record in read_quarantine(self.warehouse, self.topic)}

    @property
    def decisions(self) -> DecisionLog:
        return DecisionLog(self.folder / "quarantine" / f"{self.topic}.jsonl")

    def replay(self) -> FeedSummary:
        """Replay all decisions whose records have not arrived."""
        ledger_folder = self.folder / "producer-again"
        return Feed(
            ReplayDecisionSource(self.decisions),
            self.contract,
            self.broker.bootstrap,
            ledger_folder,
            lambda: self.clock,
        ).run(Event())

    def audit_with_replay(self) -> AuditReport:
        scope = self.scope(self.folder)
        producer_ledgers = {f"quarantine-{self.topic}": self.folder / "producer-again"}
        return run_audit(
            dataclasses.replace(scope, producer_ledgers={**scope.producer_ledgers, **producer_ledgers}),
            Sample(),
        )


def repair(source: QuarantinedRecord, device: str) -> tuple[RecordPosition, bytes]:
    record = {"id": device, "device": device, "site": "s", "at": NOON + 280_000, "temperature": 21.5}
    return source.position, json.dumps({**record, "humidity": 40.0}).encode()


@pytest.mark.spark
@pytest.mark.kafka
def test_repaired_records_are_counted_once_and_pass_the_audit(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    stream = RepairedStream(spark, broker, "repaired", tmp_path / "stream")
    stream.run(RECORD_COUNT)
    quarantined = stream.quarantined
    assert sorted(quarantined) == ["future_event_time", "malformed", "no_value"]
    read_ranges = {"minutes": {1: (0, quarantined["future_event_time"].position.offset + 1)}}
    repaired = dict(
        [repair(quarantined["malformed"], "repaired-1"), repair(quarantined["no_value"], "repaired-2")]
    )
    wanted = [quarantined["malformed"], quarantined["no_value"]]
    judgement = judge_records(wanted, repaired, create_record_format(stream.contract).checker, read_ranges)
    assert judgement.refused == ()
    stream.decisions.record(replay_decisions(judgement, stream.clock, "repaired by the vendor"))
    stream.decisions.record(
        discard_decisions([quarantined["future_event_time"]], stream.clock, "a test of the vendor")
    )
    assert (
        quarantine_summary(stream.audit_with_replay())
        == "3 quarantined = 0 pending + 2 replaying + 0 replayed + 1 discarded"
    )
    for _ in range(2):
        assert stream.replay().complete
    stream.resume(RECORD_COUNT + 6)
    stream.clock += 3 * MINUTE
    stream.feed(RECORD_COUNT + LATER_COUNT)
    stream.resume(RECORD_COUNT + LATER_COUNT + 6)
    report = stream.audit_with_replay()
    assert [
        (verdict.check, verdict.summary) for verdict in report.verdicts if verdict.state != "passed"
    ] == []
    assert quarantine_summary(report) == "3 quarantined = 0 pending + 0 replaying + 2 replayed + 1 discarded"
    summaries = {verdict.check: verdict.summary for verdict in report.verdicts}
    assert summaries["accounts"].startswith(f"{RECORD_COUNT + LATER_COUNT + 6:,} read = ")
    assert "+ 3 quarantined +" in summaries["accounts"]
    assert summaries["delivery repaired"].startswith(
        f"{RECORD_COUNT + LATER_COUNT + 2:,} records of 2 producers are in the topic"
    )
    rows = DeltaTable(stream.warehouse / "latest" / "minutes").to_pyarrow_table()
    repaired_rows = rows.filter(pc.starts_with(rows.column("device"), "repaired-")).sort_by("device")
    assert repaired_rows.select(["device", "temperature", "readings"]).to_pylist() == [
        {"device": f"repaired-{number}", "temperature": 21.5, "readings": 1} for number in (1, 2)
    ]


def quarantine_summary(report: AuditReport) -> str:
    (summary,) = (verdict.summary for verdict in report.verdicts if verdict.check == "quarantine")
    return summary
