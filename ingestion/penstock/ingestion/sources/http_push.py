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
from penstock.ingestion.producer.batch import Batch, joined
from penstock.ingestion.producer.checking import Checker
from penstock.ingestion.sources.source import NOTHING, Once


@dataclass(frozen=True, slots=True)
class PushLimits:
    """`waiting_bytes` is how much may be held, half received or not acknowledged, before senders are turned away.

    Of one sender alone, when nobody else waits, a whole body is taken whatever its size below `body_bytes`.
    """

    body_bytes: int = 16_777_216
    waiting_bytes: int = 67_108_864
    answer_seconds: float = 30.0
    body_seconds: float = 60.0


@dataclass(slots=True)
class _Request:
    batch: Batch
    size: int
    answer: "asyncio.Future[bool]"
    ends: int = 0


class HttpPush(Once):
    """Serves senders, and hands what they send to the feed.

    It cannot repeat itself and needs not: who got no answer sends again. So a record may be there twice when its
    sender was not answered; a sender that needs better gives its records ids.
    """

    def __init__(self, host: str, port: int, checker: Checker, limits: PushLimits | None = None) -> None:
        self.description = "HTTP push"
        self._limits = limits or PushLimits()
        self._checker = checker
        self._arrived: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        self._unanswered: deque[_Request] = deque()
        self._yielded = 0
        self._waiting_bytes = 0
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
        self._thread = threading.Thread(target=self._serve, name="http-push", daemon=True)

    @property
    def port(self) -> int:
        """The port that is served, once `read` has begun."""
        return int(self._server.servers[0].sockets[0].getsockname()[1])

    @property
    def serving(self) -> bool:
        """Whether senders are listened to."""
        return self._server.started

    @property
    def waiting_bytes(self) -> int:
        """How much is held: what is being received, and what the broker has not acknowledged, answered or not."""
        return self._waiting_bytes

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Serve, and yield what is pushed, requests that came together in one batch."""
        self._start()
        try:
            while self._thread.is_alive():
                requests = self._take()
                for request in requests:
                    self._yielded += len(request.batch)
                    request.ends = self._yielded
                self._unanswered += requests
                yield joined([request.batch for request in requests]) if requests else NOTHING
        finally:
            self._stop()

    def acknowledged(self, records: int) -> None:
        """Answer the senders of the first so many records."""
        done = []
        while self._unanswered and self._unanswered[0].ends <= records:
            done.append(self._unanswered.popleft())
        if done and self._loop is not None:
            self._loop.call_soon_threadsafe(self._answer, done, True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as ASGI wants it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await _respond(send, 405, {"error": "only POST of records is understood here"})
            return
        try:
            body = await self._received(receive)
        except _RefusedError as refused:
            await _respond(send, *refused.answer)
        except ConnectionAbortedError:
            return  # The sender left in the middle: there is nobody to answer, and no record is known to be whole.
        else:
            await _respond(send, *await self._taken(scope, body))

    async def _received(self, receive: Any) -> bytes:
        """Return a body, which counts as waiting from its first byte; the rest of a refused one is dropped."""
        parts: list[bytes] = []
        size, refused = 0, None
        deadline = asyncio.get_running_loop().time() + self._limits.body_seconds
        try:
            async for part in _parts(receive, deadline):
                if refused is None:
                    parts.append(part)
                    size += len(part)
                    self._waiting_bytes += len(part)
                    refused = self._refusal(size)
                else:
                    parts.clear()
            if refused is not None:
                raise refused
        except TimeoutError as error:
            self._waiting_bytes -= size
            seconds = self._limits.body_seconds
            raise _RefusedError(
                408, f"the body did not come to its end within {seconds:g} s; send it again"
            ) from error
        except BaseException:
            self._waiting_bytes -= size
            raise
        return b"".join(parts)

    def _refusal(self, size: int) -> "_RefusedError | None":
        limits = self._limits
        if size > limits.body_bytes:
            return _RefusedError(
                413, f"a body may have {limits.body_bytes} bytes; send fewer records at once"
            )
        if self._waiting_bytes > max(limits.waiting_bytes, size):
            return _RefusedError(429, "the broker does not keep up; send the records again in a second")
        return None

    async def _taken(self, scope: Any, body: bytes) -> tuple[int, dict[str, Any]]:
        if self._server.should_exit:
            self._waiting_bytes -= len(body)
            return 503, {"error": "stopping; send the records again"}
        many = b"ndjson" in dict(scope["headers"]).get(b"content-type", b"")
        lines = (
            [(number, line) for number, line in enumerate(body.splitlines()) if line] if many else [(0, body)]
        )
        try:
            batch = self._checker.check(Batch([line for _, line in lines]))
        except IngestionError as error:
            # No fault of the records: a registry that is away, for one.
            self._waiting_bytes -= len(body)
            return 503, {"error": f"the records cannot be checked now: {error}"}
        broken = {lines[place][0]: str(error) for place, error in batch.broken.items()}
        return await self._delivered(batch, len(body), broken)

    async def _delivered(self, batch: Batch, size: int, broken: dict[int, str]) -> tuple[int, dict[str, Any]]:
        request = _Request(batch, size, asyncio.get_running_loop().create_future())
        self._arrived.put(request)
        try:
            delivered = await asyncio.wait_for(request.answer, self._limits.answer_seconds)
        except TimeoutError:
            # They go on waiting for the broker, and so go on counting.
            return 503, {"error": "the broker did not acknowledge in time; send the records again"}
        if not delivered:
            return 503, {"error": "stopping; send the records again"}
        return 200, {"records": len(batch), "broken": broken}

    def _take(self) -> list[_Request]:
        requests = []
        while not self._arrived.empty():
            requests.append(self._arrived.get_nowait())
        return requests

    def _start(self) -> None:
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise SourceError(
                    f"{self._server.config.host}:{self._server.config.port} cannot be served; is the port taken?"
                )
            self._started.wait(0.01)

    def _stop(self) -> None:
        """Turn away who is not answered yet; called after the feed has waited for what is in flight."""
        self._server.should_exit = True
        left = [*self._unanswered, *self._take()]
        self._unanswered.clear()
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._answer, left, False)
        self._thread.join()

    def _serve(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve()

        try:
            asyncio.run(serve())
        except SystemExit:
            # How uvicorn says that it cannot listen; `_start` tells it on.
            return

    def _answer(self, requests: list[_Request], delivered: bool) -> None:
        """Tell the senders, in the thread that serves them, and let go of what they sent."""
        for request in requests:
            self._waiting_bytes -= request.size
            if not request.answer.done():
                request.answer.set_result(delivered)


class _RefusedError(Exception):
    """A body is not taken; `answer` is what its sender is told."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.answer = (status, {"error": why})


async def _parts(receive: Any, deadline: float) -> AsyncIterator[bytes]:
    """Yield the parts of a body as they come, until a time of the loop, after which TimeoutError is raised.

    Raises ConnectionAbortedError when the sender leaves before the end.
    """
    while True:
        async with asyncio.timeout_at(deadline):
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
