"""The audit of a stream of Avro records."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.quality.audit.audited_stream import FULL_SAMPLE, AuditedStream, find_states
from tests.quality.audit.test_whole_audit import CHECK_NAMES

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.registry import FileRegistry
from penstock.quality.audit.replay_check import check_replayed_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_every_check_of_an_avro_stream_passes(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    stream = AuditedStream(
        spark, broker, "audited-avro", tmp_path / "stream", registry=FileRegistry(tmp_path / "registry")
    )
    stream.run(6_000)
    report = stream.audit()
    assert find_states(report) == dict.fromkeys(CHECK_NAMES, "passed"), report.verdicts
    summaries = {verdict.check: verdict.summary for verdict in report.verdicts}
    assert "6,004 read" in summaries["accounts"]
    assert "3 quarantined" in summaries["accounts"]
    scope = stream.scope(stream.folder)
    stored = {stream.topic: TopicSource(spark, stream.topic, BrokerAccess(broker.bootstrap))}
    assert check_replayed_batches(scope, stored, FULL_SAMPLE).state == "passed"
