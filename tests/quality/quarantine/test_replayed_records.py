"""A stream that starts after a replay counts the replayed record once."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.spark.stream_runner import send

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.windows.fixed import Fixed
from penstock.infra.local_broker import LocalBroker
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision
from penstock.quality.quarantine.quarantined_records import RecordPosition, read_quarantine
from penstock.quality.quarantine.replayed_records import ReplayedRecords
from penstock.stream import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOSE_COLUMNS = (
    Column("device", "STRING", required=True),
    Column("at", "BIGINT", required=True),
    Column("unit", "STRING"),
)


@pytest.mark.spark
@pytest.mark.kafka
def test_a_later_stream_counts_a_replayed_record_once(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    broker.create_topic("sentagain", 1)
    records = [{"device": "a", "at": at} for at in (1, 2, 3)]
    copy = {**records[1], "unit": "C"}
    send(broker, "sentagain", [*records, copy])
    DecisionLog(tmp_path / "quarantine" / "sentagain.jsonl").record(
        [QuarantineDecision("replayed", 0, 1, 5, "", b"{}")]
    )
    source = PlanSource("sentagain", TopicOrigin("sentagain"), LOOSE_COLUMNS, "at")
    sinks = (LatestValues("later"),)
    stage = Stage(
        "later", ("sentagain",), Fixed(60_000), (AggregateOutput("n", count()),), key=("device",), sinks=sinks
    )
    plan = Plan("later", (source,), (stage,))
    config = BoundedRunConfig(
        tmp_path / "run", tmp_path / "tables", find_resent=ReplayedRecords(tmp_path / "quarantine")
    )
    topic_source = TopicSource(spark, "sentagain", BrokerAccess(broker.bootstrap))
    outcome = run_bounded(plan, spark, topic_source, config, lambda: 0)
    (account,) = outcome.accounts
    assert (account.read, account.accepted, account.quarantined) == (4, 3, 1)
    table = pa.table(DeltaTable(tmp_path / "tables/latest/later").to_pyarrow_table())
    assert table.select(["device", "n"]).to_pylist() == [{"device": "a", "n": 3}]
    (quarantined,) = read_quarantine(tmp_path / "tables", "sentagain")
    assert (quarantined.position, quarantined.reason) == (
        RecordPosition(0, 1),
        "replayed: a record with a decision",
    )
