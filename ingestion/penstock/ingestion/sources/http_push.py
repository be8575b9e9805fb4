"""The source `http`: records that clients push; a response of 200 means that the broker has them.

`POST /` takes one JSON record, or many as lines (`application/x-ndjson`).

| status | meaning |
|---|---|
| 200 | all records are in the ledger; `broken` maps the numbers of invalid lines, from 0, to the reason |
| 408 | the body did not arrive in time; no record was accepted |
| 413 | the body is larger than allowed; no record was accepted |
| 429 | too many bytes wait for the broker; no record was accepted; retry after `Retry-After` |
| 503 | stopping, no registry, or no acknowledgement in time; records may be delivered; send them again |
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import uvicorn

from penstock.ingestion.errors import IngestionError, SourceError
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
    )
    location = "address"

    def __init__(
        self, host: str, port: int, checker: RecordChecker, limits: PushLimits | None = None
    ) -> None:
        self.description = "HTTP push"
        self._limits = limits or PushLimits()
        self._checker = checker
        self._received_requests: queue.SimpleQueue[_PushRequest] = queue.SimpleQueue()
        self._unanswered_requests: deque[_PushRequest] = deque()
        self._yielded_records = 0
        self._pending_bytes = 0
        self._started = threading.Event()
        config = uvicorn.Config(
            self,
            host=host,
            port=port,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=60,
        )
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run_server, name="http-push", daemon=True)

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a server at the address."""
        return cls(*context.parse_address(), context.record_format.checker)

    @property
    def port(self) -> int:
        """The port of the server, after `read` has started."""
        return int(self._server.servers[0].sockets[0].getsockname()[1])

    @property
    def is_serving(self) -> bool:
        """Whether the server accepts requests."""
        return self._server.started

    @property
    def pending_bytes(self) -> int:
        """The bytes of requests that are being received or that the broker has not acknowledged."""
        return self._pending_bytes

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Serve requests, and yield the records of all pending requests as one batch."""
        self._start_server()
        try:
            while self._thread.is_alive():
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
        if answered and self._loop is not None:
            self._loop.call_soon_threadsafe(self._answer_requests, answered, True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request, as an ASGI application."""
        if scope["type"] != "http" or scope["method"] != "POST":
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
        if self._server.should_exit:
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
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise SourceError(
                    f"Cannot listen on {self._server.config.host}:{self._server.config.port}. "
                    "Check whether the port is in use."
                )
            self._started.wait(0.01)

    def _stop_server(self) -> None:
        """Refuse the unanswered requests. Runs after the feed has waited for records in flight."""
        self._server.should_exit = True
        unanswered = [*self._unanswered_requests, *self._drain_requests()]
        self._unanswered_requests.clear()
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._answer_requests, unanswered, False)
        self._thread.join()

    def _run_server(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve()

        try:
            asyncio.run(serve())
        except SystemExit:
            # uvicorn exits like this if it cannot listen; `_start_server` reports it.
            return

    def _answer_requests(self, requests: list[_PushRequest], delivered: bool) -> None:
        """Set the answers in the thread of the server, and release the bytes."""
        for request in requests:
            self._pending_bytes -= request.body_bytes
            if not request.answer.done():
                request.answer.set_result(delivered)


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
