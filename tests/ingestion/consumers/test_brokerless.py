"""A consumer that fails, with and without a broker between it and its source."""

import json
import threading
from pathlib import Path

import pytest
from tests.ingestion.network_feeds import VALID_RECORD, create_feed, create_topic, open_network_source
from tests.ingestion.servers import run_line_server

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.consumers import PlainConsumer, consume_without_broker
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.feed import FeedLimits

pytestmark = pytest.mark.kafka


def test_a_failed_consumer_loses_lines_of_a_socket_and_none_of_a_topic(broker: LocalBroker, tmp_path: Path):
    """The same consumer fails and restarts on the same lines, with and without a topic."""
    sent = iter(range(10**9))

    def serve(client) -> None:
        while True:
            client.sendall(VALID_RECORD % (next(sent), 1) + b"\n")

    handled = consume_directly_with_failure(serve)
    assert count_missing(handled) > 0
    sent = iter(range(10**9))
    contract = create_topic(broker, "through")
    with run_line_server(serve) as port:
        source = open_network_source("socket", contract, f"127.0.0.1:{port}")
        summary = create_feed(broker, contract, source, tmp_path / "s").run(
            threading.Event(), limits=FeedLimits(count=20_000, finish_ms=30_000)
        )
    assert summary.acknowledged_records == 20_000
    handled = consume_topic_with_failure(broker, "through", 20_000)
    assert count_missing(handled) == 0
    assert len(handled) > 20_000, "uncommitted records are handled again"
    assert set(handled) == set(range(20_000))


class SimulatedFailureError(Exception):
    pass


def consume_directly_with_failure(serve) -> list[int]:
    handled: list[int] = []
    stop = threading.Event()

    def fail_halfway(values) -> None:
        handled.extend(int(json.loads(value)["id"]) for value in values[: len(values) // 2])
        raise SimulatedFailureError

    def handle_until_done(values) -> None:
        handled.extend(int(json.loads(value)["id"]) for value in values)
        if len(handled) > 5_000:
            stop.set()

    with run_line_server(serve) as port:
        with pytest.raises(SimulatedFailureError):
            consume_without_broker(
                open_network_source("socket", load_contract("sensors"), f"127.0.0.1:{port}"),
                fail_halfway,
                stop,
            )
        consume_without_broker(
            open_network_source("socket", load_contract("sensors"), f"127.0.0.1:{port}"),
            handle_until_done,
            stop,
        )
    return handled


def count_missing(handled: list[int]) -> int:
    return max(handled) + 1 - len(set(handled))


def consume_topic_with_failure(broker: LocalBroker, topic: str, number: int) -> list[int]:
    handled: list[int] = []

    def handle(records) -> None:
        handled.extend(int(json.loads(record.value)["id"]) for record in records)
        if 1_000 < len(handled) < 1_900:
            raise SimulatedFailureError

    with pytest.raises(SimulatedFailureError):
        PlainConsumer(broker.bootstrap, topic, "failing", handle).run(threading.Event())
    stop = threading.Event()

    def handle_until_done(records) -> None:
        handled.extend(int(json.loads(record.value)["id"]) for record in records)
        if len(set(handled)) == number:
            stop.set()

    PlainConsumer(broker.bootstrap, topic, "failing", handle_until_done).run(stop)
    return handled
