"""The headers of every response: nothing is loaded from elsewhere, nothing inline runs, no page is framed."""

from penstock.core.http.asgi import AsgiApplication, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
STATIC_PREFIX = "/static/"


def add_security_headers(application: AsgiApplication) -> AsgiApplication:
    """Return an application that adds the headers to each response. Browsers store no page."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_file = scope["type"] == "http" and scope["path"].startswith(STATIC_PREFIX)
        caching = (b"cache-control", b"no-cache" if is_file else b"no-store")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *SECURITY_HEADERS, caching]
            await send(message)

        await application(scope, receive, send_with_headers)

    return answer
