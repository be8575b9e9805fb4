"""A stream that begins after a record was sent again, under a looser contract, counts it once."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.pipelines.spark.running import send

from penstock.infra.local_broker import LocalBroker
from penstock.pipelines.model import count
from penstock.pipelines.plan import Column, Fixed, LatestValues, Output, Plan, Source, Stage, Topic
from penstock.pipelines.spark.bounded import BoundedConfig, run_bounded
from penstock.pipelines.spark.stored.topic import StoredTopic
from penstock.quality.quarantine.decisions import Decision, Decisions
from penstock.quality.quarantine.records import Place, quarantined
from penstock.quality.quarantine.sent_again import SentAgain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOSE = (
    Column("device", "STRING", required=True),
    Column("at", "BIGINT", required=True),
    Column("unit", "STRING"),
)


@pytest.mark.spark
@pytest.mark.kafka
def test_a_later_stream_counts_a_record_that_was_sent_again_once(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    broker.create_topic("sentagain", 1)
    records = [{"device": "a", "at": at} for at in (1, 2, 3)]
    copy = {**records[1], "unit": "C"}
    send(broker, "sentagain", [*records, copy])
    Decisions(tmp_path / "quarantine" / "sentagain.jsonl").take([Decision("replayed", 0, 1, 5, "", b"{}")])
    source = Source("sentagain", Topic("sentagain"), LOOSE, "at")
    sinks = (LatestValues("later"),)
    stage = Stage(
        "later", ("sentagain",), Fixed(60_000), (Output("n", count()),), key=("device",), sinks=sinks
    )
    plan = Plan("later", (source,), (stage,))
    config = BoundedConfig(
        tmp_path / "run", tmp_path / "tables", sent_again=SentAgain(tmp_path / "quarantine")
    )
    stored = StoredTopic(spark, "sentagain", broker.bootstrap)
    outcome = run_bounded(plan, spark, stored, config, lambda: 0)
    (account,) = outcome.accounts
    assert (account.read, account.folded, account.quarantined) == (4, 3, 1)
    table = pa.table(DeltaTable(tmp_path / "tables/latest/later").to_pyarrow_table())
    assert table.select(["device", "n"]).to_pylist() == [{"device": "a", "n": 3}]
    (held,) = quarantined(tmp_path / "tables", "sentagain")
    assert (held.place, held.reason) == (Place(0, 1), "sent_again: a record that was decided on")
