"""Requests for states of streams, by the same code as `penstock stream`, recorded in the journal."""

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from penstock.platform.console.access import Caller, describe_caller
from penstock.platform.console.console_context import ConsoleContext, context_of
from penstock.platform.console.forms import read_form
from penstock.platform.console.stream_table import NEVER_STARTED
from penstock.platform.services.operator_actions import record_action
from penstock.platform.services.stream_catalog import list_stream_names
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, request_state

_STOPPED_STATES = (NEVER_STARTED, "stopped", "drained")
_FAILED_STATES = ("failed", "retrying", "fenced")


def list_commands(state: str) -> list[tuple[str, str]]:
    """Return the commands that make sense in a state, each with what it does."""
    if state in _STOPPED_STATES:
        names = ["start"]
    elif state in _FAILED_STATES:
        names = ["start", "drain", "stop"]
    elif state == "paused":
        names = ["resume", "drain", "stop"]
    else:
        names = ["pause", "restart", "drain", "stop"]
    return [(name, STREAM_COMMANDS[name].description) for name in names]


async def change_state(request: Request) -> Response:
    """Request the state that a form names, and show the stream again."""
    caller = describe_caller(request)
    form = await read_form(request, caller)
    command, stream = form.get("command", ""), request.path_params["stream"]
    if command not in STREAM_COMMANDS:
        raise HTTPException(400, f"There is no command {command!r}. Commands: {', '.join(STREAM_COMMANDS)}")
    await run_in_threadpool(_request_state, context_of(request), stream, command, caller)
    return RedirectResponse(f"/streams/{stream}", 303)


def _request_state(context: ConsoleContext, stream: str, command: str, caller: Caller) -> None:
    stream_command = STREAM_COMMANDS[command]
    known = set(list_stream_names())
    if stream_command.stops:  # a stream whose file was removed can be stopped
        known |= set(context.store.read_desired_states())
    request_state(context.store, stream, stream_command, known)
    record_action(context.settings.home, f"stream {command}", stream, origin="console", user=caller.user)
    context.stack.forget()


ROUTES = [Route("/streams/{stream}/state", change_state, methods=["POST"], name="stream_state")]
