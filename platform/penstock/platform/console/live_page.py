"""Pages whose parts change: the whole page first, and from then on the parts that changed, as server-sent events.

The address of a page answers both. A browser asks for events with `Accept: text/event-stream`. Each event holds the
changed blocks of the template, by their names.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from penstock.platform.console.access import SESSION_COOKIE, describe_caller, open_session
from penstock.platform.console.console_context import ConsoleContext, context_of
from penstock.platform.console.read_errors import READ_ERRORS, describe_read_error

EVENT_STREAM = "text/event-stream"
KEEP_ALIVE_S = 15.0
"""A comment is sent after this time without an event, so that a connection whose viewer has gone is noticed."""
STOP_POLL_S = 0.25

ViewModel = Mapping[str, Any]
ReadModel = Callable[[Request, ConsoleContext], ViewModel]


def is_update(request: Request) -> bool:
    """Return whether a request is for the updates of a page that is shown already."""
    return EVENT_STREAM in request.headers.get("accept", "")


@dataclass(frozen=True)
class LivePage:
    """A page: the file of its template, what reads its view model, and how often it is updated."""

    template: str
    read: ReadModel
    interval_s: float = 2.0

    def route(self, path: str, name: str) -> Route:
        """Return the route of the page."""
        return Route(path, self.respond, name=name)

    async def respond(self, request: Request) -> Response:
        """Answer with the whole page, or with its updates."""
        if is_update(request):
            return StreamingResponse(self._iter_events(request), media_type=EVENT_STREAM)
        session = open_session(request)
        page = await run_in_threadpool(self._render_page, request, session.token)
        response = HTMLResponse(page)
        if session.is_new:
            response.set_cookie(SESSION_COOKIE, session.cookie, httponly=True, samesite="strict")
        return response

    def _render_page(self, request: Request, form_token: str) -> str:
        return context_of(request).renderer.render_page(self.template, self._read(request, form_token))

    def _read(self, request: Request, form_token: str) -> ViewModel:
        return {**build_base_model(request, form_token), **self.read(request, context_of(request))}

    def _render_blocks(self, request: Request, form_token: str) -> dict[str, str]:
        return context_of(request).renderer.render_blocks(self.template, self._read(request, form_token))

    async def _iter_events(self, request: Request) -> AsyncIterator[str]:
        """Yield what changed since the last event; the first one has every block."""
        token = open_session(request).token
        sent: dict[str, str] = {}
        silent_s = 0.0
        yield f"retry: {round(self.interval_s * 1000)}\n\n"
        while not await request.is_disconnected():
            try:
                blocks = await run_in_threadpool(self._render_blocks, request, token)
            except READ_ERRORS as error:
                yield f"event: problem\ndata: {json.dumps(describe_read_error(error))}\n\n"
                blocks, sent = {}, {}
            changed = {name: html for name, html in blocks.items() if sent.get(name) != html}
            if changed:
                sent, silent_s = blocks, 0.0
                yield f"data: {json.dumps(changed)}\n\n"
            elif silent_s >= KEEP_ALIVE_S:
                silent_s = 0.0
                yield ": nothing changed\n\n"
            silent_s += self.interval_s
            if await _wait_or_stop(context_of(request), self.interval_s):
                return


def build_base_model(request: Request, form_token: str) -> ViewModel:
    """Return what every page shows: who calls, where, and what forms need."""
    return {
        "caller": describe_caller(request),
        "form_token": form_token,
        "path": request.url.path,
        "dagster_url": f"http://127.0.0.1:{context_of(request).settings.dagster.port}",
    }


def render_form_answer(request: Request, template: str, model: ViewModel) -> Response:
    """Answer a form with a page that asks for more. It is not live."""
    base = build_base_model(request, open_session(request).token)
    return HTMLResponse(context_of(request).renderer.render_page(template, {**base, **model}))


async def _wait_or_stop(context: ConsoleContext, seconds: float) -> bool:
    """Wait, and return early with True when the console stops."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not context.stopping.is_set():
        remaining_s = deadline - loop.time()
        if remaining_s <= 0:
            return False
        await asyncio.sleep(min(remaining_s, STOP_POLL_S))
    return True
