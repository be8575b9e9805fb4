"""Limits of the HTTP push source, read by the test in place of a feed."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import pytest
from tests.patience import PATIENCE_S

from penstock.core.errors import ServerAccessError
from penstock.core.waiting import wait_until
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.errors import RegistryError, SourceOptionsError
from penstock.ingestion.producer import SourceBatch, create_record_format
from penstock.ingestion.sources.http_push import HttpPushSource, PushLimits
from penstock.ingestion.sources.source_kind import SourceContext

VALID_RECORD = b'{"id":"%d","device":"d","site":"s","at":1700000000000,"temperature":21.5}'
PUSH_LIMITS = PushLimits(max_pending_bytes=20_000, answer_timeout_s=0.2)


class PushReceiver:
    """Reads a source without acknowledging its records, and sends requests to it."""

    def __init__(self, source: HttpPushSource) -> None:
        self.source = source
        self.values: list[bytes] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def _read(self) -> None:
        with closing(self.source.read(None)) as batches:  # type: ignore[type-var]
            for batch in batches:
                self._collect(batch)
                if self._stop.wait(0.005):
                    return

    def _collect(self, batch: SourceBatch) -> None:
        assert batch.keys is not None
        self.values += batch.values

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self.source.is_serving, PATIENCE_S, "the source to serve")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> int:
        return self._send_post(body, headers)[0]

    def answer(self, body: bytes) -> dict[str, Any]:
        return self._send_post(body)[1]

    def _send_post(self, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, dict[str, Any]]:
        with closing(
            http.client.HTTPConnection("127.0.0.1", self.source.port, timeout=PATIENCE_S)
        ) as connection:
            connection.request("POST", "/", body, {"Content-Type": "application/x-ndjson", **(headers or {})})
            with connection.getresponse() as response:
                content = response.read()
                is_json = response.headers["Content-Type"] == "application/json"
                return response.status, json.loads(content) if is_json else {}

    def send_partial_body(self, body: bytes, total_bytes: int) -> socket.socket:
        """Send the start of a body whose declared length is `total_bytes`."""
        client = socket.create_connection(("127.0.0.1", self.source.port))
        client.sendall(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % total_bytes + body
        )
        return client

    def wait_for_values(self, *values: bytes) -> None:
        """Wait until exactly these values were yielded; an answer may come before."""
        wait_until(lambda: self.values == list(values), PATIENCE_S, "the values to be yielded")

    def wait_for_pending_bytes(self, pending_bytes: int) -> None:
        wait_until(
            lambda: self.source.pending_bytes == pending_bytes, PATIENCE_S, f"{pending_bytes} pending bytes"
        )


@pytest.fixture
def receiver() -> Iterator[PushReceiver]:
    with PushReceiver(
        HttpPushSource("127.0.0.1", 0, create_record_format(load_contract("sensors")).checker, PUSH_LIMITS)
    ) as running:
        yield running


def make_lines(first: int, number: int) -> bytes:
    return b"\n".join(VALID_RECORD % n for n in range(first, first + number))


def test_a_request_that_timed_out_still_counts_as_pending(receiver: PushReceiver) -> None:
    body = make_lines(0, 200)
    assert receiver.post(body) == 503
    receiver.wait_for_pending_bytes(len(body))
    assert receiver.post(make_lines(200, 200)) == 429
    receiver.wait_for_pending_bytes(len(body))
    receiver.wait_for_values(*body.split(b"\n"))
    receiver.source.on_acknowledged(200)
    receiver.wait_for_pending_bytes(0)


def test_a_partially_received_body_counts_as_pending(receiver: PushReceiver) -> None:
    with receiver.send_partial_body(b"x" * 15_000, total_bytes=16_000):
        receiver.wait_for_pending_bytes(15_000)
        assert receiver.post(make_lines(0, 100)) == 429
    receiver.wait_for_pending_bytes(0)
    assert receiver.values == []


def test_the_body_of_a_stalled_sender_is_dropped_after_a_timeout() -> None:
    limits = PushLimits(max_pending_bytes=20_000, answer_timeout_s=0.2, body_timeout_s=2.0)
    checker = create_record_format(load_contract("sensors")).checker
    with (
        PushReceiver(HttpPushSource("127.0.0.1", 0, checker, limits)) as receiver,
        receiver.send_partial_body(make_lines(0, 3), total_bytes=1_000) as client,
    ):
        client.settimeout(30)
        assert client.recv(10_000).startswith(b"HTTP/1.1 408 ")
        receiver.wait_for_pending_bytes(0)
        assert receiver.post(make_lines(7, 1)) == 503
        receiver.wait_for_values(make_lines(7, 1))


def test_invalid_lines_are_reported_by_their_line_number() -> None:
    with PushReceiver(
        HttpPushSource("127.0.0.1", 0, create_record_format(load_contract("sensors")).checker)
    ) as receiver:
        check_invalid_line_numbers(receiver)


def check_invalid_line_numbers(receiver: PushReceiver) -> None:
    body = b"\n".join([VALID_RECORD % 0, b"", b"{", b"", VALID_RECORD % 1, b"["])
    answers: list[dict[str, Any]] = []
    sender = threading.Thread(target=lambda: answers.append(receiver.answer(body)))
    sender.start()
    wait_until(lambda: len(receiver.values) == 4, PATIENCE_S, "the lines to be yielded")
    receiver.source.on_acknowledged(4)
    sender.join(30)
    (answer,) = answers
    assert (answer["records"], list(answer["broken"])) == (4, ["2", "5"])


def test_a_failing_checker_refuses_the_body() -> None:
    class FailingChecker:
        def check(self, batch: SourceBatch) -> SourceBatch:
            raise RegistryError("the registry at http://127.0.0.1:1 was asked and failed; is it up?")

    with PushReceiver(HttpPushSource("127.0.0.1", 0, FailingChecker(), PUSH_LIMITS)) as receiver:
        assert receiver.post(make_lines(0, 3)) == 503
        receiver.wait_for_pending_bytes(0)
        assert receiver.values == []


def test_the_body_of_a_disconnected_sender_is_dropped(receiver: PushReceiver) -> None:
    with receiver.send_partial_body(make_lines(0, 3), total_bytes=1_000):
        receiver.wait_for_pending_bytes(len(make_lines(0, 3)))
    receiver.wait_for_pending_bytes(0)
    assert receiver.post(make_lines(7, 1)) == 503
    receiver.wait_for_values(make_lines(7, 1))


@pytest.mark.parametrize("number", [300, 2_000])
def test_a_single_body_may_exceed_the_pending_limit(receiver: PushReceiver, number: int) -> None:
    assert receiver.post(make_lines(0, number)) == 503
    receiver.wait_for_values(*make_lines(0, number).split(b"\n"))
    assert receiver.post(VALID_RECORD % 1) == 429


def open_source(tmp_path: Path, address: str, **options: str) -> HttpPushSource:
    """Open the source as the command `ingest` does."""
    contract = load_contract("sensors")
    converted = HttpPushSource.convert_options({"address": address, **options})
    context = SourceContext(contract, create_record_format(contract), lambda: 0, converted)
    source = HttpPushSource.open(context)
    assert isinstance(source, HttpPushSource)
    return source


def test_a_good_sender_goes_on_beside_four_hundred_idle_connections(receiver: PushReceiver) -> None:
    with ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(socket.create_connection(("127.0.0.1", receiver.source.port)))
        assert receiver.post(make_lines(7, 1)) == 503, "read, and not acknowledged by this test"
        receiver.wait_for_values(make_lines(7, 1))


def test_a_good_sender_goes_on_beside_four_hundred_slow_bodies(receiver: PushReceiver) -> None:
    with ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(receiver.send_partial_body(b"x", total_bytes=1_000))
        assert receiver.post(make_lines(7, 1)) == 503
        receiver.wait_for_values(make_lines(7, 1))
    receiver.wait_for_pending_bytes(len(make_lines(7, 1)))


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}],
    ids=str,
)
def test_a_page_of_another_site_cannot_push(receiver: PushReceiver, headers: dict[str, str]) -> None:
    assert receiver.post(VALID_RECORD % 1, {"Content-Type": "text/plain", **headers}) == 403
    assert receiver.values == []


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "machine.example:0"])
def test_an_address_for_other_machines_needs_a_token(tmp_path: Path, address: str) -> None:
    with pytest.raises(ServerAccessError, match=r"HTTP push at .* Name a secret that senders must bear"):
        open_source(tmp_path, address)


def test_a_sender_must_bear_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("canary-0123456789")
    with PushReceiver(open_source(tmp_path, "0.0.0.0:0", token=str(tmp_path / "token"))) as receiver:
        assert receiver.post(VALID_RECORD % 1) == 401
        assert receiver.post(VALID_RECORD % 1, {"Authorization": "Bearer wrong"}) == 401
        sender = threading.Thread(
            target=lambda: receiver.post(VALID_RECORD % 2, {"Authorization": "Bearer canary-0123456789"})
        )
        sender.start()
        receiver.wait_for_values(VALID_RECORD % 2)
        receiver.source.on_acknowledged(1)
        sender.join(30)


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(SourceOptionsError, match="both --certificate and --key"):
        open_source(tmp_path, "127.0.0.1:0", certificate=str(tmp_path / "certificate.pem"))
