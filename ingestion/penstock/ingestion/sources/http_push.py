"""The source `http`: records that clients push; a response of 200 means that the broker has them.

`POST /` takes one JSON record, or many as lines (`application/x-ndjson`).

| status | meaning |
|---|---|
| 200 | all records are in the ledger; `broken` maps the numbers of invalid lines, from 0, to the reason |
| 401 | the request does not bear the token of the server; no record was accepted |
| 403 | the request comes from a web page of another site; no record was accepted |
| 408 | the body did not arrive in time; no record was accepted |
| 413 | the body is larger than allowed; no record was accepted |
| 429 | too many bytes wait for the broker; no record was accepted; retry after `Retry-After` |
| 503 | stopping, no registry, or no acknowledgement in time; records may be delivered; send them again |
"""

import asyncio
import queue
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.core.errors import HttpServerError
from penstock.core.http.asgi import Receive, Scope, Send
from penstock.core.http.bearer_token import BearerToken, TokenCheck, require_token_beyond_loopback
from penstock.core.http.connections import ConnectionLimits
from penstock.core.http.page_guard import PageGuard
from penstock.core.http.server import HttpServer, TlsFiles
from penstock.core.secret import read_secret
from penstock.ingestion.errors import IngestionError, SourceError, SourceOptionsError
from penstock.ingestion.producer.batch import SourceBatch, concat_batches
from penstock.ingestion.producer.checker import RecordChecker
from penstock.ingestion.sources.source import EMPTY_BATCH, OneShotSource, RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind, SourceOption


@dataclass(frozen=True, slots=True)
class PushLimits:
    """Limits of the server. `max_pending_bytes` limits the bytes that are received or unacknowledged.

    A single body below `max_body_bytes` is always accepted if no other request is pending.
    """

    max_body_bytes: int = 16_777_216
    max_pending_bytes: int = 67_108_864
    answer_timeout_s: float = 30.0
    body_timeout_s: float = 60.0
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)


@dataclass(slots=True)
class _PushRequest:
    batch: SourceBatch
    body_bytes: int
    answer: "asyncio.Future[bool]"
    end_record: int = 0


class HttpPushSource(OneShotSource, SourceKind):
    """HTTP server to which clients push records.

    It cannot replay: a client without a response sends its records again, so a record can be delivered twice.
    Clients that need deduplication set record ids.
    """

    kind = "http"
    options = (
        SourceOption("address", "The address to serve or to connect to, host:port.", is_required=True),
        SourceOption(
            "token",
            "Secret reference (a file, or env:NAME): the bearer token that requests must send. "
            "An address that other machines reach needs one.",
        ),
        SourceOption("certificate", "PEM file of the certificate with its chain, for HTTPS.", parse=Path),
        SourceOption("key", "PEM file of the key of the certificate.", parse=Path),
    )
    location = "address"

    def __init__(
        self,
        host: str,
        port: int,
        checker: RecordChecker,
        limits: PushLimits | None = None,
        *,
        token: BearerToken | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        require_token_beyond_loopback(
            host, token, "HTTP push", "Name a secret that senders must bear with --token"
        )
        self.description = "HTTP push"
        self._limits = limits or PushLimits()
        self._checker = checker
        self._received_requests: queue.SimpleQueue[_PushRequest] = queue.SimpleQueue()
        self._unanswered_requests: deque[_PushRequest] = deque()
        self._yielded_records = 0
        self._pending_bytes = 0
        # A page of another site does not know a token, whatever it calls this machine.
        guarded = PageGuard(self._answer_request, () if token is None else None)
        self._server = HttpServer(
            guarded if token is None else TokenCheck(guarded, token),
            host,
            port,
            name="http-push",
            limits=self._limits.connections,
            tls=tls,
        )

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a server at the address, with the token and the certificate of the options."""
        options = context.options
        certificate, key = options.get("certificate"), options.get("key")
        if (certificate is None) != (key is None):
            raise SourceOptionsError("HTTPS needs both --certificate and --key. Give both, or neither.")
        tls = TlsFiles(certificate, key) if certificate and key else None
        return cls(
            *context.parse_address(), context.record_format.checker, token=_read_token(options), tls=tls
        )

    @property
    def port(self) -> int:
        """The port of the server, after `read` has started."""
        return self._server.port

    @property
    def is_serving(self) -> bool:
        """Whether the server accepts requests."""
        return self._server.is_serving

    @property
    def pending_bytes(self) -> int:
        """The bytes of requests that are being received or that the broker has not acknowledged."""
        return self._pending_bytes

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Serve requests, and yield the records of all pending requests as one batch."""
        self._start_server()
        try:
            while self._server.is_serving:
                requests = self._drain_requests()
                for request in requests:
                    self._yielded_records += len(request.batch)
                    request.end_record = self._yielded_records
                self._unanswered_requests += requests
                yield concat_batches([request.batch for request in requests]) if requests else EMPTY_BATCH
        finally:
            self._stop_server()

    def on_acknowledged(self, records: int) -> None:
        """Answer the requests of the first `records` records."""
        answered = []
        while self._unanswered_requests and self._unanswered_requests[0].end_record <= records:
            answered.append(self._unanswered_requests.popleft())
        if answered:
            self._server.call(lambda: self._answer_requests(answered, True))

    async def _answer_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, as an ASGI application."""
        if scope["method"] != "POST":
            await _respond(send, 405, {"error": "use POST to send records"})
            return
        try:
            body = await self._receive_body(receive)
        except _BodyRefusedError as refused:
            await _respond(send, *refused.answer)
        except ConnectionAbortedError:
            return  # The client disconnected: no response is possible, and the body may be incomplete.
        else:
            await _respond(send, *await self._accept_body(scope, body))

    async def _receive_body(self, receive: Any) -> bytes:
        """Return the body; its bytes count as pending from the first one, and a refused body is discarded."""
        parts: list[bytes] = []
        body_bytes, refusal = 0, None
        deadline = asyncio.get_running_loop().time() + self._limits.body_timeout_s
        try:
            async for part in _read_body_parts(receive, deadline):
                if refusal is None:
                    parts.append(part)
                    body_bytes += len(part)
                    self._pending_bytes += len(part)
                    refusal = self._check_limits(body_bytes)
                else:
                    parts.clear()
            if refusal is not None:
                raise refusal
        except TimeoutError as error:
            self._pending_bytes -= body_bytes
            seconds = self._limits.body_timeout_s
            raise _BodyRefusedError(
                408, f"the body did not arrive within {seconds:g} s; send it again"
            ) from error
        except BaseException:
            self._pending_bytes -= body_bytes
            raise
        return b"".join(parts)

    def _check_limits(self, body_bytes: int) -> "_BodyRefusedError | None":
        limits = self._limits
        if body_bytes > limits.max_body_bytes:
            return _BodyRefusedError(
                413, f"the limit of a body is {limits.max_body_bytes} bytes; send fewer records in a request"
            )
        if self._pending_bytes > max(limits.max_pending_bytes, body_bytes):
            return _BodyRefusedError(429, "the broker is too slow; send the records again after a second")
        return None

    async def _accept_body(self, scope: Any, body: bytes) -> tuple[int, dict[str, Any]]:
        if not self._server.is_serving:
            self._pending_bytes -= len(body)
            return 503, {"error": "stopping; send the records again"}
        is_ndjson = b"ndjson" in dict(scope["headers"]).get(b"content-type", b"")
        lines = (
            [(number, line) for number, line in enumerate(body.splitlines()) if line]
            if is_ndjson
            else [(0, body)]
        )
        try:
            batch = self._checker.check(SourceBatch([line for _, line in lines]))
        except IngestionError as error:
            # Not an error of the records: the registry is unavailable, for example.
            self._pending_bytes -= len(body)
            return 503, {"error": f"the records cannot be checked now: {error}"}
        invalid_lines = {lines[index][0]: str(error) for index, error in batch.invalid.items()}
        return await self._wait_until_delivered(batch, len(body), invalid_lines)

    async def _wait_until_delivered(
        self, batch: SourceBatch, body_bytes: int, invalid_lines: dict[int, str]
    ) -> tuple[int, dict[str, Any]]:
        request = _PushRequest(batch, body_bytes, asyncio.get_running_loop().create_future())
        self._received_requests.put(request)
        try:
            delivered = await asyncio.wait_for(request.answer, self._limits.answer_timeout_s)
        except TimeoutError:
            # The records still wait for the broker, so their bytes stay pending.
            return 503, {"error": "the broker did not acknowledge in time; send the records again"}
        if not delivered:
            return 503, {"error": "stopping; send the records again"}
        return 200, {"records": len(batch), "broken": invalid_lines}

    def _drain_requests(self) -> list[_PushRequest]:
        requests = []
        while not self._received_requests.empty():
            requests.append(self._received_requests.get_nowait())
        return requests

    def _start_server(self) -> None:
        try:
            self._server.start()
        except HttpServerError as error:
            raise SourceError(str(error)) from None

    def _stop_server(self) -> None:
        """Refuse the unanswered requests. Runs after the feed has waited for records in flight."""
        unanswered = [*self._unanswered_requests, *self._drain_requests()]
        self._unanswered_requests.clear()
        self._server.call(lambda: self._answer_requests(unanswered, False))
        self._server.stop()

    def _answer_requests(self, requests: list[_PushRequest], delivered: bool) -> None:
        """Set the answers in the thread of the server, and release the bytes."""
        for request in requests:
            self._pending_bytes -= request.body_bytes
            if not request.answer.done():
                request.answer.set_result(delivered)


def _read_token(options: Mapping[str, Any]) -> BearerToken | None:
    if not options.get("token"):
        return None
    description = "The token of HTTP push"
    return BearerToken(read_secret(options["token"], description), description)


class _BodyRefusedError(Exception):
    """A body is refused; `answer` is the response."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.answer = (status, {"error": reason})


async def _read_body_parts(receive: Any, deadline_s: float) -> AsyncIterator[bytes]:
    """Yield the parts of a body until the deadline, then raise TimeoutError.

    Raises ConnectionAbortedError if the client disconnects before the end.
    """
    while True:
        async with asyncio.timeout_at(deadline_s):
            message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError("the client disconnected")
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


async def _respond(send: Any, status: int, content: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/json")]
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(content)})
