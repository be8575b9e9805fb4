"""Sockets, pushes and events, into a real broker."""

import dataclasses
import http.client
import json
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.ingestion.serving import RunningFeed, run_event_server, run_line_server
from tests.ingestion.topic_reading import read_topic

from penstock.core.waiting import wait_until
from penstock.infra.local_broker import LocalBroker
from penstock.infra.ports import find_free_ports
from penstock.ingestion.consumers import PlainConsumer, consume_without_broker
from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.errors import SourceError
from penstock.ingestion.feed import Feed, FeedLimits
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.sources import RecordSource
from penstock.ingestion.sources.http_push import HttpPushSource, PushLimits
from penstock.ingestion.sources.line_batches import make_json_batch
from penstock.ingestion.sources.socket_source import SocketSource
from penstock.ingestion.sources.source_discovery import find_source_kind, open_source
from penstock.ingestion.topics import ensure_topics

pytestmark = pytest.mark.kafka
VALID_RECORD = b'{"id":"%d","device":"d%d","site":"s","at":1700000000000,"temperature":21.5}'


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def create_topic(broker: LocalBroker, name: str, like: str = "sensors") -> Contract:
    contract = dataclasses.replace(load_contract(like), topic=name)
    ensure_topics(broker.bootstrap, [contract])
    return contract


def open_network_source(kind: str, contract: Contract, place: str, **options: object) -> RecordSource:
    return open_source(
        kind,
        contract,
        create_record_format(contract),
        now_ms,
        {find_source_kind(kind).location: place, **options},
    )


def create_feed(broker: LocalBroker, contract: Contract, source: RecordSource, ledger: Path) -> Feed:
    return Feed(source, contract, broker.bootstrap, ledger, now_ms)


class PushClient:
    """Posts to an HTTP push, each time over a connection of its own."""

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
        wait_until(lambda: source.is_serving or running.error is not None, 30, "the source to serve")
        yield source, contract.topic


def test_an_answer_means_that_the_records_are_in_the_topic(broker: LocalBroker, push):
    source, topic = push
    sender = PushClient(source)
    assert sender.post(VALID_RECORD % (0, 0)) == (200, {"records": 1, "broken": {}})
    assert [record.value for record in read_topic(broker.bootstrap, topic)] == [VALID_RECORD % (0, 0)]
    lines = [VALID_RECORD % (n, n % 5) for n in range(1, 400)]
    lines[7] = b'{"id": 1'
    status, answer = sender.post(b"\n".join(lines), "application/x-ndjson")
    assert (status, answer["records"], list(answer["broken"])) == (200, 399, ["7"])
    found = {record.value for record in read_topic(broker.bootstrap, topic)}
    assert found == {VALID_RECORD % (0, 0), *lines} - {lines[7]}
    assert [record.value for record in read_topic(broker.bootstrap, f"{topic}.dead-letters")] == [lines[7]]


@pytest.mark.parametrize("push", [PushLimits(max_body_bytes=10_000)], indirect=True)
def test_a_body_that_is_too_large_is_refused_and_the_next_one_taken(push):
    source, _ = push
    sender = PushClient(source)
    assert sender.post(b"x" * 200_000)[0] == 413
    assert sender.post(VALID_RECORD % (1, 1))[0] == 200


def test_many_senders_are_all_answered_and_nothing_is_twice(broker: LocalBroker, push):
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
    found = [json.loads(record.value)["id"] for record in read_topic(broker.bootstrap, topic)]
    assert len(found) == len(set(found)) == 8_000


def test_senders_are_turned_away_while_the_broker_is_gone_and_served_when_it_is_back(
    own_broker: LocalBroker, tmp_path: Path
):
    contract = create_topic(own_broker, "pressed")
    limits = PushLimits(max_pending_bytes=20_000, answer_timeout_s=120)
    source = HttpPushSource("127.0.0.1", 0, create_record_format(contract).checker, limits)
    with RunningFeed(create_feed(own_broker, contract, source, tmp_path / "push")):
        wait_until(lambda: source.is_serving, 30, "the source to serve")
        assert PushClient(source).post(VALID_RECORD % (0, 0))[0] == 200
        own_broker.kill()
        body = b"\n".join(VALID_RECORD % (n, 1) for n in range(1, 200))
        answers: list[int] = []
        waiting = threading.Thread(
            target=lambda: answers.append(PushClient(source).post(body, "application/x-ndjson")[0])
        )
        waiting.start()
        wait_until(lambda: source.pending_bytes >= len(body), 30, "the request to wait")
        assert PushClient(source).post(body, "application/x-ndjson")[0] == 429
        own_broker.start()
        waiting.join(120)
        assert answers == [200]
    assert len(read_topic(own_broker.bootstrap, "pressed")) == 200


def test_a_port_that_is_taken_is_said(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "taken")
    (port,) = find_free_ports(1)
    with run_line_server(lambda _client: None) as taken:
        assert port != taken
        source = HttpPushSource("127.0.0.1", taken, create_record_format(contract).checker)
        with pytest.raises(SourceError, match="port is in use"):
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
    found = [json.loads(record.value)["text"] for record in read_topic(broker.bootstrap, "socket-lines")]
    assert sorted(found) == sorted(words)


def test_a_socket_that_is_followed_is_connected_to_again(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "socket-again", like="lines")
    turns = iter(["one\ntwo\n", "three", "four\n"])
    with run_line_server(lambda client: client.sendall(next(turns).encode())) as port:
        source = open_network_source("socket", contract, f"127.0.0.1:{port}", text=True, follow=True)
        feed = create_feed(broker, contract, source, tmp_path / "s")
        assert feed.run(threading.Event(), limits=FeedLimits(count=4)).acknowledged_records == 4
    found = [json.loads(record.value)["text"] for record in read_topic(broker.bootstrap, "socket-again")]
    assert sorted(found) == ["four", "one", "three", "two"]


def test_a_socket_that_is_followed_is_waited_for(caplog: pytest.LogCaptureFixture):
    (port,) = find_free_ports(1)
    now = iter(range(0, 10**9, 250))
    batches = SocketSource("127.0.0.1", port, make_json_batch, lambda: next(now)).read(None)
    assert [len(next(batches)) for _ in range(20)] == [0] * 20
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith(
        f"Connection failed; retrying every second: Cannot connect to socket 127.0.0.1:{port}: "
    )


def test_nobody_serving_lines_is_said(broker: LocalBroker):
    (port,) = find_free_ports(1)
    source = open_network_source("socket", load_contract("lines"), f"127.0.0.1:{port}", text=True)
    with pytest.raises(SourceError, match="nc -lk"):
        next(source.read(None))


def test_a_dead_consumer_loses_lines_directly_and_none_through_a_topic(broker: LocalBroker, tmp_path: Path):
    """The same numbered lines, and the same consumer that dies while it handles them and comes back."""
    sent = iter(range(10**9))

    def serve(client) -> None:
        while True:
            client.sendall(VALID_RECORD % (next(sent), 1) + b"\n")

    handled = consume_directly_and_die(serve)
    assert count_missing(handled) > 0
    sent = iter(range(10**9))
    contract = create_topic(broker, "through")
    with run_line_server(serve) as port:
        source = open_network_source("socket", contract, f"127.0.0.1:{port}")
        summary = create_feed(broker, contract, source, tmp_path / "s").run(
            threading.Event(), limits=FeedLimits(count=20_000, finish_ms=30_000)
        )
    assert summary.acknowledged_records == 20_000
    handled = consume_topic_and_die(broker, "through", 20_000)
    assert count_missing(handled) == 0
    assert len(handled) > 20_000, "what was handled and not committed is handled again"
    assert set(handled) == set(range(20_000))


class ConsumerDiesError(Exception):
    pass


def consume_directly_and_die(serve) -> list[int]:
    handled: list[int] = []
    stop = threading.Event()

    def die_in_the_middle(values) -> None:
        handled.extend(int(json.loads(value)["id"]) for value in values[: len(values) // 2])
        raise ConsumerDiesError

    def handle_on(values) -> None:
        handled.extend(int(json.loads(value)["id"]) for value in values)
        if len(handled) > 5_000:
            stop.set()

    with run_line_server(serve) as port:
        with pytest.raises(ConsumerDiesError):
            consume_without_broker(
                open_network_source("socket", load_contract("sensors"), f"127.0.0.1:{port}"),
                die_in_the_middle,
                stop,
            )
        consume_without_broker(
            open_network_source("socket", load_contract("sensors"), f"127.0.0.1:{port}"), handle_on, stop
        )
    return handled


def count_missing(handled: list[int]) -> int:
    return max(handled) + 1 - len(set(handled))


def consume_topic_and_die(broker: LocalBroker, topic: str, number: int) -> list[int]:
    handled: list[int] = []

    def handle(records) -> None:
        handled.extend(int(json.loads(record.value)["id"]) for record in records)
        if 1_000 < len(handled) < 1_900:
            raise ConsumerDiesError

    with pytest.raises(ConsumerDiesError):
        PlainConsumer(broker.bootstrap, topic, "dying", handle).run(threading.Event())
    stop = threading.Event()

    def handle_on(records) -> None:
        handled.extend(int(json.loads(record.value)["id"]) for record in records)
        if len(set(handled)) == number:
            stop.set()

    PlainConsumer(broker.bootstrap, topic, "dying", handle_on).run(stop)
    return handled


def test_events_are_resumed_after_the_last_one(broker: LocalBroker, tmp_path: Path):
    contract = create_topic(broker, "events")
    events = [VALID_RECORD % (n, n % 3) for n in range(1_700)]
    events[3] = b'{"id":"3","device":"d0",\n"site":"s","at":1}'
    reached = []
    with run_event_server(events) as url:
        for _ in range(5):
            source = open_network_source("sse", contract, url)
            feed = create_feed(broker, contract, source, tmp_path / "events")
            reached.append(
                feed.run(threading.Event(), limits=FeedLimits(finish_ms=30_000)).acknowledged_until
            )
    assert reached == [500, 1_000, 1_500, 1_700, 1_700]
    found = [int(json.loads(record.value)["id"]) for record in read_topic(broker.bootstrap, "events")]
    assert sorted(found) == list(range(1_700))
