"""A stream of records in Avro is proved as any other, its batches run again included."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.quality.audit.stream import WHOLE, Lived, states
from tests.quality.audit.test_on_spark import CHECKS

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.registry import FileRegistry
from penstock.quality.audit.replay_check import check_replayed_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_everything_is_proved_of_a_stream_in_avro(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    lived = Lived(
        spark, broker, "audited-avro", tmp_path / "stream", registry=FileRegistry(tmp_path / "registry")
    )
    lived.live(6_000)
    report = lived.audit()
    assert states(report) == dict.fromkeys(CHECKS, "passed"), report.verdicts
    said = {verdict.check: verdict.summary for verdict in report.verdicts}
    assert "6,004 read" in said["accounts"]
    assert "3 quarantined" in said["accounts"]
    scope = lived.scope(lived.folder)
    stored = {lived.topic: TopicSource(spark, lived.topic, BrokerAccess(broker.bootstrap))}
    assert check_replayed_batches("results", scope, stored, WHOLE).state == "passed"
