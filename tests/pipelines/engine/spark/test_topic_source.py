"""Reading a stored topic while its broker is away."""

import socket

import pytest

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.errors import BoundedInputError
from penstock.engine.spark.bounded_sources import topic_source


def test_an_unavailable_broker_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_source, "BROKER_TIMEOUT_S", 1.0)
    with socket.socket() as silent_socket:
        silent_socket.bind(("127.0.0.1", 0))  # bound, but not listening
        address = f"127.0.0.1:{silent_socket.getsockname()[1]}"
        with pytest.raises(BoundedInputError) as error:
            topic_source.list_topic_ranges("sensors", BrokerAccess(address))
    assert str(error.value).startswith(f"topic sensors at {address}: its broker does not answer (")
