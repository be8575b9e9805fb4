"""Runs the console until it is stopped."""

import threading
from contextlib import closing

from penstock.core.clock import now_ms
from penstock.core.errors import HttpServerError
from penstock.core.http.server import HttpServer
from penstock.platform.console.application import build_console, build_context
from penstock.platform.control import open_control_store
from penstock.platform.errors import PortTakenError
from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK


def serve_console(settings: Settings, stop: threading.Event) -> None:
    """Serve the console on loopback until `stop` is set. Raises PortTakenError if the port is in use."""
    with closing(open_control_store(settings.control_url, settings.control_secret)) as store:
        context = build_context(settings, store, now_ms)
        server = HttpServer(build_console(context), LOOPBACK, settings.console.port, name="console")
        try:
            server.start()
        except HttpServerError as error:
            raise PortTakenError(
                f"The console cannot start. {error} To use another port: PENSTOCK_CONSOLE__PORT=PORT"
            ) from None
        try:
            stop.wait()
        finally:
            context.stopping.set()  # otherwise the server waits for the live updates of open pages
            server.stop()
            context.history.close()
