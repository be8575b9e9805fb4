"""Records pushed over HTTP: an answer means that the broker has them.

`POST /` takes one JSON record, or many as lines (`application/x-ndjson`).

| answer | meaning |
|---|---|
| 200 | all records are acknowledged and in the ledger; `broken` names the lines that went to the dead letters |
| 413 | the body is larger than allowed; nothing was taken |
| 429 | too much is waiting for the broker; nothing was taken; try again after `Retry-After` |
| 503 | stopping, or the broker did not acknowledge in time; the records may be delivered or not; send them again |
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import uvicorn

from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import Batch, joined
from penstock.ingestion.producer.checking import Checker
from penstock.ingestion.sources.source import NOTHING


@dataclass(frozen=True, slots=True)
class PushLimits:
    """`waiting_bytes` is how much may wait for the broker before senders are turned away."""

    body_bytes: int = 16_777_216
    waiting_bytes: int = 67_108_864
    answer_seconds: float = 30.0


@dataclass(slots=True)
class _Request:
    batch: Batch
    size: int
    answer: "asyncio.Future[bool]"
    ends: int = 0


class HttpPush:
    """Serves senders, and hands what they send to the feed.

    It cannot repeat itself and needs not: who got no answer sends again. So a record may be there twice when its
    sender was not answered; a sender that needs better gives its records ids.
    """

    repeats = False

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
        """How much has come and is not answered yet."""
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

    def repeat(self, position: Any) -> Iterator[Batch]:
        """Give nothing: the senders repeat."""
        raise SourceError(f"{self.description} cannot go back to {position}: its senders send again")

    def acknowledged(self, records: int) -> None:
        """Answer the senders of the first so many records."""
        done = []
        while self._unanswered and self._unanswered[0].ends <= records:
            done.append(self._unanswered.popleft())
        if done and self._loop is not None:
            self._loop.call_soon_threadsafe(_answer, done, True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as ASGI wants it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await _respond(send, 405, {"error": "only POST of records is understood here"})
            return
        status, content = await self._take_in(scope, receive)
        await _respond(send, status, content)

    async def _take_in(self, scope: Any, receive: Any) -> tuple[int, dict[str, Any]]:
        limits = self._limits
        body = await _body(receive, limits.body_bytes)
        if body is None:
            return 413, {"error": f"a body may have {limits.body_bytes} bytes; send fewer records at once"}
        if self._server.should_exit:
            return 503, {"error": "stopping; send the records again"}
        if self._waiting_bytes and self._waiting_bytes + len(body) > limits.waiting_bytes:
            return 429, {"error": "the broker does not keep up; send the records again in a second"}
        many = b"ndjson" in dict(scope["headers"]).get(b"content-type", b"")
        values = [line for line in body.splitlines() if line] if many else [body]
        return await self._delivered(self._checker.check(Batch(values)), len(body))

    async def _delivered(self, batch: Batch, size: int) -> tuple[int, dict[str, Any]]:
        request = _Request(batch, size, asyncio.get_running_loop().create_future())
        self._waiting_bytes += size
        self._arrived.put(request)
        try:
            delivered = await asyncio.wait_for(request.answer, self._limits.answer_seconds)
        except TimeoutError:
            return 503, {"error": "the broker did not acknowledge in time; send the records again"}
        finally:
            self._waiting_bytes -= size
        if not delivered:
            return 503, {"error": "stopping; send the records again"}
        broken = {place: str(error) for place, error in batch.broken.items()}
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
            self._loop.call_soon_threadsafe(_answer, left, False)
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


def _answer(requests: list[_Request], delivered: bool) -> None:
    for request in requests:
        if not request.answer.done():
            request.answer.set_result(delivered)


async def _body(receive: Any, limit: int) -> bytes | None:
    """Return the body, or None for one that is too large, of which the rest is read and dropped."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if size <= limit:
            parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts) if size <= limit else None


async def _respond(send: Any, status: int, content: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/json")]
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(content)})
