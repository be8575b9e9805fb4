"""Records pushed over HTTP: an answer means that the broker has them.

`POST /` takes one JSON record, or many as lines (`application/x-ndjson`).

| answer | meaning |
|---|---|
| 200 | all records are in the ledger; `broken` names the lines, counted from 0, that went to the dead letters |
| 408 | the body did not come to its end in time; nothing was taken |
| 413 | the body is larger than allowed; nothing was taken |
| 429 | too much is waiting for the broker; nothing was taken; try again after `Retry-After` |
| 503 | stopping, no registry to check by, or no acknowledgement in time; delivered or not, send the records again |
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
from penstock.ingestion.sources.source import EMPTY_BATCH, OneShotSource


@dataclass(frozen=True, slots=True)
class PushLimits:
    """`waiting_bytes` is how much may be held, half received or not acknowledged, before senders are turned away.

    Of one sender alone, when nobody else waits, a whole body is taken whatever its size below `body_bytes`.
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


class HttpPushSource(OneShotSource):
    """Serves senders, and hands what they send to the feed.

    It cannot repeat itself and needs not: who got no answer sends again. So a record may be there twice when its
    sender was not answered; a sender that needs better gives its records ids.
    """

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

    @property
    def port(self) -> int:
        """The port that is served, once `read` has begun."""
        return int(self._server.servers[0].sockets[0].getsockname()[1])

    @property
    def is_serving(self) -> bool:
        """Whether senders are listened to."""
        return self._server.started

    @property
    def pending_bytes(self) -> int:
        """How much is held: what is being received, and what the broker has not acknowledged, answered or not."""
        return self._pending_bytes

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Serve, and yield what is pushed, requests that came together in one batch."""
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
        """Answer the senders of the first so many records."""
        answered = []
        while self._unanswered_requests and self._unanswered_requests[0].end_record <= records:
            answered.append(self._unanswered_requests.popleft())
        if answered and self._loop is not None:
            self._loop.call_soon_threadsafe(self._answer_requests, answered, True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as ASGI wants it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await _respond(send, 405, {"error": "only POST of records is understood here"})
            return
        try:
            body = await self._receive_body(receive)
        except _BodyRefusedError as refused:
            await _respond(send, *refused.answer)
        except ConnectionAbortedError:
            return  # The sender left in the middle: there is nobody to answer, and no record is known to be whole.
        else:
            await _respond(send, *await self._accept_body(scope, body))

    async def _receive_body(self, receive: Any) -> bytes:
        """Return a body, which counts as waiting from its first byte; the rest of a refused one is dropped."""
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
                408, f"the body did not come to its end within {seconds:g} s; send it again"
            ) from error
        except BaseException:
            self._pending_bytes -= body_bytes
            raise
        return b"".join(parts)

    def _check_limits(self, body_bytes: int) -> "_BodyRefusedError | None":
        limits = self._limits
        if body_bytes > limits.max_body_bytes:
            return _BodyRefusedError(
                413, f"a body may have {limits.max_body_bytes} bytes; send fewer records at once"
            )
        if self._pending_bytes > max(limits.max_pending_bytes, body_bytes):
            return _BodyRefusedError(429, "the broker does not keep up; send the records again in a second")
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
            # No fault of the records: a registry that is away, for one.
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
            # They go on waiting for the broker, and so go on counting.
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
                    f"{self._server.config.host}:{self._server.config.port} cannot be served; is the port taken?"
                )
            self._started.wait(0.01)

    def _stop_server(self) -> None:
        """Turn away who is not answered yet; called after the feed has waited for what is in flight."""
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
            # How uvicorn says that it cannot listen; `_start` tells it on.
            return

    def _answer_requests(self, requests: list[_PushRequest], delivered: bool) -> None:
        """Tell the senders, in the thread that serves them, and let go of what they sent."""
        for request in requests:
            self._pending_bytes -= request.body_bytes
            if not request.answer.done():
                request.answer.set_result(delivered)


class _BodyRefusedError(Exception):
    """A body is not taken; `answer` is what its sender is told."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.answer = (status, {"error": reason})


async def _read_body_parts(receive: Any, deadline_s: float) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they come, until a time of the loop, after which TimeoutError is raised.

    Raises ConnectionAbortedError when the sender leaves before the end.
    """
    while True:
        async with asyncio.timeout_at(deadline_s):
            message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionAbortedError("the sender left")
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


async def _respond(send: Any, status: int, content: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/json")]
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(content)})
