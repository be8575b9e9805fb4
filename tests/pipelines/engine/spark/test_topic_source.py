"""A topic that is read as far as it goes, where nobody answers."""

import socket

import pytest

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.errors import BoundedInputError
from penstock.engine.spark.bounded_sources import topic_source


def test_a_broker_that_is_away_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_source, "BROKER_TIMEOUT_S", 1.0)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and nobody listens
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(BoundedInputError) as told:
            topic_source.list_topic_ranges("sensors", BrokerAccess(address))
    assert str(told.value).startswith(f"topic sensors at {address}: its broker does not answer (")
