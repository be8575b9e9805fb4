"""The stream of the page of records at a time, in Spark's real-time mode: the alerts that plain Python finds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.benchmarks.record_at_a_time import (
    AlertRelay,
    alerts_topic,
    create_payment,
    is_suspicious,
)
from tests.ingestion.topic_reading import read_topic

from penstock.infra.local_broker import LocalBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODE = "record at a time"
TOGETHER, ROUNDS = 90, 10


@pytest.mark.spark
@pytest.mark.kafka
def test_each_odd_payment_is_told_while_the_batch_that_it_came_in_goes_on(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    relay = AlertRelay(spark, broker, tmp_path)
    relay.create_topics([MODE])
    query = relay.start_query(MODE)
    try:
        relay.send_payments(0, TOGETHER, 0)
        relay.receive_alerts(MODE, TOGETHER // 3)
        for number in range(TOGETHER, TOGETHER + 3 * ROUNDS, 3):
            relay.send_payments(number, 3, 0)
            relay.receive_alerts(MODE, number // 3 + 1)
        assert len(query.recentProgress) < ROUNDS, "a micro-batch would have ended with each"
    finally:
        query.stop()
    odd = [one for one in map(create_payment, range(TOGETHER + 3 * ROUNDS)) if is_suspicious(one)]
    told = read_topic(broker.bootstrap, alerts_topic(MODE))
    assert [(alert.key, said(alert.value)) for alert in told] == [
        (one["card"].encode(), {"payment": one["id"], "card": one["card"]}) for one in odd
    ]


def said(alert: bytes) -> dict[str, str]:
    """What an alert says, but for the moment at which its payment came."""
    content = json.loads(alert)
    assert content.pop("came") > 0
    return dict(content)
