"""HTTP push, sockets and server-sent events, ingested into a real broker."""

import http.client
import json
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.ingestion.network_feeds import VALID_RECORD, create_feed, create_topic, open_network_source
from tests.ingestion.servers import RunningFeed, run_event_server, run_line_server
from tests.ingestion.topic_reading import read_topic
from tests.patience import PATIENCE_S

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.infra.ports import find_free_ports
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.errors import SourceError
from penstock.ingestion.feed import FeedLimits
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.sources.http_push import HttpPushSource, PushLimits
from penstock.ingestion.sources.line_batches import make_json_batch
from penstock.ingestion.sources.socket_source import SocketSource

pytestmark = pytest.mark.kafka


class PushClient:
    """Posts to an HTTP push source, with a new connection for each request."""

    def __init__(self, source: HttpPushSource) -> None:
        self._port = source.port

    def post(self, body: bytes, kind: str = "application/json") -> tuple[int, dict[str, object]]:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)) as connection:
            connection.request("POST", "/", body, {"Content-Type": kind})
            with connection.getresponse() as response:
                return response.status, json.loads(response.read())


@pytest.fixture
def push(broker: LocalBroker, tmp_path: Path, request: pytest.FixtureRequest):
    contract = create_topic(broker, f"push-{request.node.name[:40].replace('[', '-').strip('-')}")
    limits = getattr(request, "param", PushLimits())
    source = HttpPushSource("127.0.0.1", 0, create_record_format(contract).checker, limits)
    with RunningFeed(create_feed(broker, contract, source, tmp_path / "push")) as running:
        wait_until(lambda: source.is_serving or running.error is not None, PATIENCE_S, "the source to serve")
        yield source, contract.topic


def test_an_accepted_request_has_its_records_in_the_topic(broker: LocalBroker, push):
    source, topic = push
    sender = PushClient(source)
    assert sender.post(VALID_RECORD % (0, 0)) == (200, {"records": 1, "broken": {}})
    assert [record.value for record in read_topic(broker.bootstrap, topic)] == [VALID_RECORD % (0, 0)]
    lines = [VALID_RECORD % (n, n % 5) for n in range(1, 400)]
    lines[7] = b'{"id": 1'
    status, answer = sender.post(b"\n".join(lines), "application/x-ndjson")
    assert (status, answer["records"], list(answer["broken"])) == (200, 399, ["7"])
    values = {record.value for record in read_topic(broker.bootstrap, topic)}
    assert values == {VALID_RECORD % (0, 0), *lines} - {lines[7]}
    assert [record.value for record in read_topic(broker.bootstrap, f"{topic}.dead-letters")] == [lines[7]]


@pytest.mark.parametrize("push", [PushLimits(max_body_bytes=10_000)], indirect=True)
def test_a_too_large_body_is_refused_and_the_next_accepted(push):
    source, _ = push
    sender = PushClient(source)
    assert sender.post(b"x" * 200_000)[0] == 413
    assert sender.post(VALID_RECORD % (1, 1))[0] == 200


def test_concurrent_senders_are_answered_without_duplicates(broker: LocalBroker, push):
    source, topic = push
    answers: list[int] = []

    def send(number: int) -> None:
        sender = PushClient(source)
        for turn in range(10):
            lines = [VALID_RECORD % (number * 10_000 + turn * 100 + n, n % 5) for n in range(100)]
            answers.append(sender.post(b"\n".join(lines), "application/x-ndjson")[0])

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 80
    values = [json.loads(record.value)["id"] for record in read_topic(broker.bootstrap, topic)]
    assert len(values) == len(set(values)) == 8_000


def test_requests_are_refused_without_the_broker_and_accepted_after_its_restart(
    own_broker: LocalBroker, tmp_path: Path
):
    contract = create_topic(own_broker, "backpressure")
    limits = PushLimits(max_pending_bytes=20_000, answer_timeout_s=120)
    source = HttpPushSource("127.0.0.1", 0, create_record_format(contract).checker, limits)
    with RunningFeed(create_feed(own_broker, contract, source, tmp_path / "push")):
        wait_until(lambda: source.is_serving, PATIENCE_S, "the source to serve")
        assert PushClient(source).post(VALID_RECORD % (0, 0))[0] == 200
        own_broker.kill()
        body = b"\n".join(VALID_RECORD % (n, 1) for n in range(1, 200))
        answers: list[int] = []
        sender = threading.Thread(
            target=lambda: answers.append(PushClient(source).post(body, "application/x-ndjson")[0])
        )
        sender.start()
        wait_until(lambda: source.pending_bytes >= len(body), PATIENCE_S, "the request to wait")
        assert PushClient(source).post(body, "application/x-ndjson")[0] == 429
        own_broker.start()
        sender.join(120)
        assert answers == [200]
    assert len(read_topic(own_broker.bootstrap, "backpressure")) == 200


def test_a_port_in_use_is_reported(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "taken")
    (port,) = find_free_ports(1)
    with run_line_server(lambda _client: None) as used_port:
        assert port != used_port
        source = HttpPushSource("127.0.0.1", used_port, create_record_format(contract).checker)
        with pytest.raises(SourceError, match="Address already in use"):
            create_feed(broker, contract, source, tmp_path / "push").run(threading.Event())


def test_lines_of_a_socket_become_records(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "socket-lines", like="lines")
    words = ["one", "two and more", "", "wört"]
    with run_line_server(lambda client: client.sendall("\n".join(words).encode())) as port:
        source = open_network_source("socket", contract, f"127.0.0.1:{port}", text=True)
        assert (
            create_feed(broker, contract, source, tmp_path / "s").run(threading.Event()).acknowledged_records
            == 4
        )
    values = [json.loads(record.value)["text"] for record in read_topic(broker.bootstrap, "socket-lines")]
    assert sorted(values) == sorted(words)


def test_a_followed_socket_is_reconnected(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "socket-again", like="lines")
    chunks = iter(["one\ntwo\n", "three", "four\n"])
    with run_line_server(lambda client: client.sendall(next(chunks).encode())) as port:
        source = open_network_source("socket", contract, f"127.0.0.1:{port}", text=True, follow=True)
        feed = create_feed(broker, contract, source, tmp_path / "s")
        assert feed.run(threading.Event(), limits=FeedLimits(count=4)).acknowledged_records == 4
    values = [json.loads(record.value)["text"] for record in read_topic(broker.bootstrap, "socket-again")]
    assert sorted(values) == ["four", "one", "three", "two"]


def test_a_followed_socket_is_retried_until_it_opens(caplog: pytest.LogCaptureFixture):
    (port,) = find_free_ports(1)
    now = iter(range(0, 10**9, 250))
    batches = SocketSource("127.0.0.1", port, make_json_batch, lambda: next(now)).read(None)
    assert [len(next(batches)) for _ in range(20)] == [0] * 20
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith(
        f"Connection failed; retrying every second: Cannot connect to socket 127.0.0.1:{port}: "
    )


def test_an_unreachable_socket_is_reported(broker: LocalBroker):
    (port,) = find_free_ports(1)
    source = open_network_source("socket", load_contract("lines"), f"127.0.0.1:{port}", text=True)
    with pytest.raises(SourceError, match="nc -lk"):
        next(source.read(None))


def test_events_resume_after_the_last_delivered_one(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "events")
    events = [VALID_RECORD % (n, n % 3) for n in range(1_700)]
    events[3] = b'{"id":"3","device":"d0",\n"site":"s","at":1}'
    positions = []
    with run_event_server(events) as url:
        for _ in range(5):
            source = open_network_source("sse", contract, url)
            feed = create_feed(broker, contract, source, tmp_path / "events")
            positions.append(
                feed.run(threading.Event(), limits=FeedLimits(finish_ms=30_000)).acknowledged_until
            )
    assert positions == [500, 1_000, 1_500, 1_700, 1_700]
    values = [int(json.loads(record.value)["id"]) for record in read_topic(broker.bootstrap, "events")]
    assert sorted(values) == list(range(1_700))
