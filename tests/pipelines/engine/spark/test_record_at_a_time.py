"""The stream of docs/record_at_a_time.md in real-time mode sends the alerts that plain Python finds."""

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
FIRST_RECORDS, ROUNDS = 90, 10


@pytest.mark.spark
@pytest.mark.kafka
def test_alerts_are_sent_while_their_batch_is_running(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    relay = AlertRelay(spark, broker, tmp_path)
    relay.create_topics([MODE])
    query = relay.start_query(MODE)
    try:
        relay.send_payments(0, FIRST_RECORDS, 0)
        relay.receive_alerts(MODE, FIRST_RECORDS // 3)
        for number in range(FIRST_RECORDS, FIRST_RECORDS + 3 * ROUNDS, 3):
            relay.send_payments(number, 3, 0)
            relay.receive_alerts(MODE, number // 3 + 1)
        assert len(query.recentProgress) < ROUNDS, "a micro-batch would have ended with each"
    finally:
        query.stop()
    suspicious = [
        payment
        for payment in map(create_payment, range(FIRST_RECORDS + 3 * ROUNDS))
        if is_suspicious(payment)
    ]
    alerts = read_topic(broker.bootstrap, alerts_topic(MODE))
    assert [(alert.key, decode_alert(alert.value)) for alert in alerts] == [
        (payment["card"].encode(), {"payment": payment["id"], "card": payment["card"]})
        for payment in suspicious
    ]


def decode_alert(alert: bytes) -> dict[str, str]:
    """Decode an alert without the arrival time of its payment."""
    content = json.loads(alert)
    assert content.pop("came") > 0
    return dict(content)
