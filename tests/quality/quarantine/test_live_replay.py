"""Records that a stream refused, sent again while it lives: it reads them once more, and each is accounted for."""

import dataclasses
import json
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from tests.quality.audit.stream import MINUTE, NOON, Lived

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.feed import Feed, FeedSummary
from penstock.ingestion.producer.record_format import create_record_format
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

RECORDS, LATER = 6_000, 1_000
"""Those that come later move the watermark beyond the windows of what was mended."""


class Mending(Lived):
    """A stream whose quarantine is decided on."""

    @property
    def held(self) -> dict[str, QuarantinedRecord]:
        """What the stream refused, by the beginning of the reason."""
        return {one.reason.split(":")[0]: one for one in read_quarantine(self.warehouse, self.topic)}

    @property
    def decisions(self) -> DecisionLog:
        return DecisionLog(self.folder / "quarantine" / f"{self.topic}.jsonl")

    def send_again(self) -> FeedSummary:
        """Send all that was ever decided and has not arrived."""
        place = self.folder / "producer-again"
        return Feed(
            ReplayDecisionSource(self.decisions),
            self.contract,
            self.broker.bootstrap,
            place,
            lambda: self.clock,
        ).run(Event())

    def proved(self) -> AuditReport:
        scope = self.scope(self.folder)
        ours = {f"quarantine-{self.topic}": self.folder / "producer-again"}
        return run_audit(
            dataclasses.replace(scope, producer_ledgers={**scope.producer_ledgers, **ours}), Sample()
        )


def mended(one: QuarantinedRecord, device: str) -> tuple[RecordPosition, bytes]:
    record = {"id": device, "device": device, "site": "s", "at": NOON + 280_000, "temperature": 21.5}
    return one.position, json.dumps({**record, "humidity": 40.0}).encode()


@pytest.mark.spark
@pytest.mark.kafka
def test_what_was_mended_is_in_the_results_once_and_the_audit_accounts_for_it(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    stream = Mending(spark, broker, "mending", tmp_path / "stream")
    stream.live(RECORDS)
    held = stream.held
    assert sorted(held) == ["future_event_time", "malformed", "no_value"]
    reached = {"minutes": {1: (0, held["future_event_time"].position.offset + 1)}}
    repaired = dict([mended(held["malformed"], "mended-1"), mended(held["no_value"], "mended-2")])
    wanted = [held["malformed"], held["no_value"]]
    judgement = judge_records(wanted, repaired, create_record_format(stream.contract).checker, reached)
    assert judgement.refused == ()
    stream.decisions.record(replay_decisions(judgement, stream.clock, "a vendor mended them"))
    stream.decisions.record(
        discard_decisions([held["future_event_time"]], stream.clock, "a test of the vendor")
    )
    assert accounted(stream.proved()) == "3 quarantined = 0 pending + 2 replaying + 0 replayed + 1 discarded"
    for _ in range(2):
        assert stream.send_again().complete
    stream.go_on(RECORDS + 6)
    stream.clock += 3 * MINUTE
    stream.feed(RECORDS + LATER)
    stream.go_on(RECORDS + LATER + 6)
    report = stream.proved()
    assert [(one.check, one.summary) for one in report.verdicts if one.state != "passed"] == []
    assert accounted(report) == "3 quarantined = 0 pending + 0 replaying + 2 replayed + 1 discarded"
    said = {verdict.check: verdict.summary for verdict in report.verdicts}
    assert said["accounts"].startswith(f"{RECORDS + LATER + 6:,} read = ")
    assert "+ 3 quarantined +" in said["accounts"]
    assert said["delivery mending"].startswith(
        f"{RECORDS + LATER + 2:,} records of 2 producers are in the topic"
    )
    rows = DeltaTable(stream.warehouse / "latest" / "minutes").to_pyarrow_table()
    ours = rows.filter(pc.starts_with(rows.column("device"), "mended-")).sort_by("device")
    assert ours.select(["device", "temperature", "readings"]).to_pylist() == [
        {"device": f"mended-{number}", "temperature": 21.5, "readings": 1} for number in (1, 2)
    ]


def accounted(report: AuditReport) -> str:
    (said,) = (verdict.summary for verdict in report.verdicts if verdict.check == "quarantine")
    return said
