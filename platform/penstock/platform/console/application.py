"""The application of the console: its pages, its files, its errors, and the headers of every response."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from penstock.core.http.asgi import AsgiApplication
from penstock.core.http.page_guard import PageGuard
from penstock.platform.console.access import describe_caller
from penstock.platform.console.console_context import ConsoleContext, context_of
from penstock.platform.console.history_runs import HistoryRuns
from penstock.platform.console.page_discovery import discover_routes
from penstock.platform.console.partition_lag import EndOffsetReader
from penstock.platform.console.quarantine_reading import QuarantineReader
from penstock.platform.console.read_errors import READ_ERRORS, describe_read_error
from penstock.platform.console.rendering import TemplateRenderer
from penstock.platform.console.response_headers import add_security_headers
from penstock.platform.console.stack_reader import StackReader
from penstock.platform.console.stream_ends import StreamEndsReader
from penstock.platform.console.topic_reading import RecentRecords
from penstock.platform.control import ControlStore
from penstock.platform.errors import (
    HistoryRunningError,
    TableNotFoundError,
    UnknownQuarantinedRecordError,
    UnknownStreamError,
    UnknownTopicError,
)
from penstock.platform.settings import Settings

NOT_FOUND_ERRORS = (
    TableNotFoundError,
    UnknownQuarantinedRecordError,
    UnknownStreamError,
    UnknownTopicError,
)
STATIC_FOLDER = Path(__file__).parent / "static"


def build_context(settings: Settings, store: ControlStore, clock: Callable[[], int]) -> ConsoleContext:
    """Return what the pages of a console use."""
    return ConsoleContext(
        settings,
        store,
        clock,
        StackReader(settings, store, clock),
        TemplateRenderer(),
        RecentRecords(settings, clock),
        StreamEndsReader(clock),
        QuarantineReader(settings, clock),
        EndOffsetReader(settings, clock),
        HistoryRuns(settings.home / "logs", clock),
    )


def build_console(context: ConsoleContext) -> AsgiApplication:
    """Return the application, guarded against pages of other sites."""
    application = Starlette(
        routes=[*discover_routes(), Mount("/static", StaticFiles(directory=STATIC_FOLDER), name="static")],
        exception_handlers={
            HTTPException: _show_http_error,
            **dict.fromkeys(READ_ERRORS, _show_read_error),
        },
    )
    application.state.context = context
    guarded = PageGuard(cast("AsgiApplication", application), context.settings.console.hosts)
    return add_security_headers(guarded)


def _show_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _render_error(request, error.status_code, error.detail)


def _show_read_error(request: Request, error: Exception) -> Response:
    match error:
        case HistoryRunningError():
            status = 409
        case _:
            status = 404 if isinstance(error, NOT_FOUND_ERRORS) else 503
    return _render_error(request, status, describe_read_error(error))


def _render_error(request: Request, status: int, message: str) -> Response:
    model = {
        "caller": describe_caller(request),
        "path": request.url.path,
        "status": status,
        "message": message,
    }
    return HTMLResponse(context_of(request).renderer.render_page("error.html", model), status)
