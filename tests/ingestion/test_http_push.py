"""The HTTP push with a test in the place of the feed: what is taken and turned away, and what is held meanwhile."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Self

import pytest

from penstock.core.waiting import wait_until
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.producer import SourceBatch, create_record_format
from penstock.ingestion.sources.http_push import HttpPushSource, PushLimits

VALID_RECORD = b'{"id":"%d","device":"d","site":"s","at":1700000000000,"temperature":21.5}'
PUSH_LIMITS = PushLimits(max_pending_bytes=20_000, answer_timeout_s=0.2)


class PushReceiver:
    """What a source has yielded; nothing of it is acknowledged until a test says so."""

    def __init__(self, source: HttpPushSource) -> None:
        self.source = source
        self.values: list[bytes] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._take)

    def _take(self) -> None:
        with closing(self.source.read(None)) as batches:  # type: ignore[type-var]
            for batch in batches:
                self._note(batch)
                if self._stop.wait(0.005):
                    return

    def _note(self, batch: SourceBatch) -> None:
        assert batch.keys is not None
        self.values += batch.values

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self.source.is_serving, 30, "the source to serve")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def post(self, body: bytes) -> int:
        return self._posted(body)[0]

    def answer(self, body: bytes) -> dict[str, Any]:
        return self._posted(body)[1]

    def _posted(self, body: bytes) -> tuple[int, dict[str, Any]]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.source.port, timeout=30)) as connection:
            connection.request("POST", "/", body, {"Content-Type": "application/x-ndjson"})
            with connection.getresponse() as response:
                return response.status, json.loads(response.read())

    def half(self, body: bytes, whole: int) -> socket.socket:
        """Send the beginning of a body, and say that it is longer."""
        client = socket.create_connection(("127.0.0.1", self.source.port))
        client.sendall(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n\r\n" % whole + body)
        return client

    def takes(self, *values: bytes) -> None:
        """Wait until these, and no others, were yielded; an answer may have come before."""
        wait_until(lambda: self.values == list(values), 30, "the values to be taken")

    def holds(self, bytes_held: int) -> None:
        wait_until(lambda: self.source.pending_bytes == bytes_held, 30, f"{bytes_held} bytes to be held")


@pytest.fixture
def taken() -> Iterator[PushReceiver]:
    with PushReceiver(
        HttpPushSource("127.0.0.1", 0, create_record_format(load_contract("sensors")).checker, PUSH_LIMITS)
    ) as running:
        yield running


def make_lines(first: int, number: int) -> bytes:
    return b"\n".join(VALID_RECORD % n for n in range(first, first + number))


def test_what_was_not_acknowledged_in_time_is_still_held_and_counted(taken: PushReceiver) -> None:
    body = make_lines(0, 200)
    assert taken.post(body) == 503
    taken.holds(len(body))
    assert taken.post(make_lines(200, 200)) == 429
    taken.holds(len(body))
    taken.takes(*body.split(b"\n"))
    taken.source.on_acknowledged(200)
    taken.holds(0)


def test_what_is_half_received_counts_too(taken: PushReceiver) -> None:
    with taken.half(b"x" * 15_000, whole=16_000):
        taken.holds(15_000)
        assert taken.post(make_lines(0, 100)) == 429
    taken.holds(0)
    assert taken.values == []


def test_of_a_sender_who_stops_in_the_middle_nothing_is_held_for_ever() -> None:
    limits = PushLimits(max_pending_bytes=20_000, answer_timeout_s=0.2, body_timeout_s=2.0)
    checker = create_record_format(load_contract("sensors")).checker
    with (
        PushReceiver(HttpPushSource("127.0.0.1", 0, checker, limits)) as taken,
        taken.half(make_lines(0, 3), whole=1_000) as client,
    ):
        client.settimeout(30)
        assert client.recv(10_000).startswith(b"HTTP/1.1 408 ")
        taken.holds(0)
        assert taken.post(make_lines(7, 1)) == 503
        taken.takes(make_lines(7, 1))


def test_broken_lines_are_named_by_their_place_in_the_body() -> None:
    with PushReceiver(
        HttpPushSource("127.0.0.1", 0, create_record_format(load_contract("sensors")).checker)
    ) as taken:
        check_invalid_line_numbers(taken)


def check_invalid_line_numbers(taken: PushReceiver) -> None:
    body = b"\n".join([VALID_RECORD % 0, b"", b"{", b"", VALID_RECORD % 1, b"["])
    answers: list[dict[str, Any]] = []
    sender = threading.Thread(target=lambda: answers.append(taken.answer(body)))
    sender.start()
    wait_until(lambda: len(taken.values) == 4, 30, "the lines to be taken")
    taken.source.on_acknowledged(4)
    sender.join(30)
    (answer,) = answers
    assert (answer["records"], list(answer["broken"])) == (4, ["2", "5"])


def test_where_nothing_can_be_checked_nothing_is_taken_and_nothing_held() -> None:
    class Away:
        def check(self, batch: SourceBatch) -> SourceBatch:
            raise RegistryError("the registry at http://127.0.0.1:1 was asked and failed; is it up?")

    with PushReceiver(HttpPushSource("127.0.0.1", 0, Away(), PUSH_LIMITS)) as taken:
        assert taken.post(make_lines(0, 3)) == 503
        taken.holds(0)
        assert taken.values == []


def test_of_a_sender_who_left_in_the_middle_nothing_is_taken(taken: PushReceiver) -> None:
    with taken.half(make_lines(0, 3), whole=1_000):
        taken.holds(len(make_lines(0, 3)))
    taken.holds(0)
    assert taken.post(make_lines(7, 1)) == 503
    taken.takes(make_lines(7, 1))


@pytest.mark.parametrize("number", [300, 2_000])
def test_one_body_alone_is_taken_whatever_may_wait(taken: PushReceiver, number: int) -> None:
    assert taken.post(make_lines(0, number)) == 503
    taken.takes(*make_lines(0, number).split(b"\n"))
    assert taken.post(VALID_RECORD % 1) == 429
