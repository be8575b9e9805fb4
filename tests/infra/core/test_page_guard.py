"""What the guard lets pass, for programs, for our own pages, and for pages of others."""

import asyncio
from typing import Any

import pytest

from penstock.core.http.page_guard import PageGuard

Headers = dict[str, str]
OWN = {"host": "127.0.0.1:3000"}
NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
CROSS_SITE = {**OWN, "sec-fetch-site": "cross-site"}
EVIL = "https://evil.example"


def call_guard(headers: Headers, method: str = "GET", kind: str = "http") -> str:
    """Send a request through the guard; return `passed`, or the status of the refusal."""
    outcome: list[str] = []

    async def application(*_: Any) -> None:
        outcome.append("passed")

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        if message["type"] != "http.response.body":
            outcome.append(str(message.get("status", message["type"])))

    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "method": method, "headers": encoded}
    asyncio.run(PageGuard(application, ["Dagster.example"])(scope, receive, send))
    (only,) = outcome
    return only


@pytest.mark.parametrize(
    "headers",
    [
        OWN,
        {"host": "localhost"},
        {"host": "[::1]:3000"},
        {"host": "10.0.0.7:3000"},
        {"host": "dagster.EXAMPLE:3000"},
        {**OWN, "sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:3000"},
        {**OWN, "sec-fetch-site": "none", **NAVIGATION},
        {"host": "dagster.example", "origin": "https://dagster.example"},
    ],
    ids=str,
)
def test_programs_and_own_pages_may_send_anything(headers: Headers) -> None:
    assert call_guard(headers, "POST") == "passed"
    assert call_guard({**headers, "upgrade": "websocket"}, kind="websocket") == "passed"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:3000"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "localhost.evil.example:3000"},
        {},
        CROSS_SITE,
        {**OWN, "sec-fetch-site": "same-site"},
        {**CROSS_SITE, **NAVIGATION},
        {**OWN, "origin": EVIL},
        {**OWN, "origin": "null"},
        {**OWN, "origin": "http://127.0.0.1:9464"},
    ],
    ids=str,
)
def test_foreign_pages_may_send_nothing(headers: Headers) -> None:
    assert call_guard(headers, "POST") == "403"
    assert call_guard(headers, kind="websocket") == "websocket.close"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_from_another_page_is_followed(site: str) -> None:
    assert call_guard({**OWN, "sec-fetch-site": site, **NAVIGATION}) == "passed"


@pytest.mark.parametrize(
    "change",
    [
        {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
        {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
        {"host": "evil.example"},
    ],
    ids=str,
)
def test_content_embedded_by_another_page_is_refused(change: Headers) -> None:
    assert call_guard({**CROSS_SITE, **NAVIGATION, **change}) == "403"
