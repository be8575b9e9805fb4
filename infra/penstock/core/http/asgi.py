"""The types of ASGI applications, and short answers."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

TEXT = [(b"content-type", b"text/plain; charset=utf-8")]
JSON = [(b"content-type", b"application/json")]


def read_header(scope: Scope, name: bytes) -> list[str]:
    """Return every value of a header; servers give names in lower case."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


async def respond(send: Send, status: int, body: bytes, headers: Headers = TEXT) -> None:
    """Send a whole response."""
    all_headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    """Refuse a request, or a web socket before it is open."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    await respond(send, status, f"{reason}\n".encode())
