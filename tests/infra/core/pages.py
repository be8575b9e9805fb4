"""An application that answers a page, or the number of bytes that it was sent."""

from penstock.core.http.asgi import Receive, Scope, Send, respond


async def answer_page(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer after the whole body has arrived."""
    size, has_more = 0, True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, has_more = size + len(message["body"]), message.get("more_body", False)
    await respond(send, 200, b"page %d" % size)
