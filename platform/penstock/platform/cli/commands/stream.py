"""`penstock stream`: request a state of streams and wait until they reach it."""

from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import streams_argument
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.steps import StepPrinter
from penstock.platform.cli.stream_drop import drop
from penstock.platform.cli.stream_history import HISTORY_COMMANDS
from penstock.platform.cli.stream_repair import repair

if TYPE_CHECKING:
    from penstock.platform.settings import Settings

SECTION: Section = "Streams"


@click.group(
    name="stream",
    short_help="Start, stop, replay and upgrade streams",
    epilog=format_examples("penstock stream start sensor_minute", "penstock stream upgrade sensor_minute"),
)
def command() -> None:
    """Start, stop, replay and upgrade streams.

    A stream is a pipeline, or `archive-TOPIC`, which archives a topic in a Delta table. The commands write the
    desired state to the control store; the stream host applies it.
    """


_wait = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait for the state; 0 to return immediately.",
)


@command.command(
    short_help="Start streams; retry failed ones",
    epilog=format_examples(
        "penstock stream start sensor_minute", "penstock stream start sensor_minute archive-sensors"
    ),
)
@streams_argument
@_wait
def start(streams: tuple[str, ...], wait: float) -> None:
    """Start streams. A running stream is not affected; a failed one is retried immediately."""
    _request_states(streams, "start", wait)


@command.command(
    short_help="Finish the current batch, then stop",
    epilog=format_examples("penstock stream drain sensor_minute"),
)
@streams_argument
@_wait
def drain(streams: tuple[str, ...], wait: float) -> None:
    """Finish the current batch of each stream, commit it, and stop the stream."""
    _request_states(streams, "drain", wait)


@command.command(
    short_help="Stop streams immediately", epilog=format_examples("penstock stream stop sensor_minute")
)
@streams_argument
@_wait
def stop(streams: tuple[str, ...], wait: float) -> None:
    """Stop streams immediately. The next start repeats an interrupted batch from its beginning."""
    _request_states(streams, "stop", wait)


@command.command(
    short_help="Pause consumption; timers keep firing",
    epilog=format_examples("penstock stream pause sensor_minute"),
)
@streams_argument
@_wait
def pause(streams: tuple[str, ...], wait: float) -> None:
    """Pause the consumption of streams.

    A paused stream stays on its host. Processing-time timers and idle-partition detection keep running.
    """
    _request_states(streams, "pause", wait)


@command.command(
    short_help="Resume paused streams", epilog=format_examples("penstock stream resume sensor_minute")
)
@streams_argument
@_wait
def resume(streams: tuple[str, ...], wait: float) -> None:
    """Resume paused streams at the offsets where they stopped reading."""
    _request_states(streams, "resume", wait)


@command.command(
    short_help="Drain streams and start them again",
    epilog=format_examples("penstock stream restart sensor_minute"),
)
@streams_argument
@_wait
def restart(streams: tuple[str, ...], wait: float) -> None:
    """Drain streams and start them again with freshly loaded pipelines."""
    _request_states(streams, "restart", wait)


def _request_states(streams: tuple[str, ...], command_name: str, timeout_s: float) -> None:
    from penstock.platform.services.operator_actions import record_action
    from penstock.platform.services.stream_lifecycle import (
        STREAM_COMMANDS,
        check_stream_exists,
        request_state,
        wait_for_state,
    )

    settings, stream_command = current_settings(), STREAM_COMMANDS[command_name]
    known_streams = _list_known_streams(settings, streams, is_stopping=stream_command.stops)
    for stream in streams:
        check_stream_exists(stream, known_streams)
    with use_control_store(settings) as store:
        requests = [request_state(store, stream, stream_command, known_streams) for stream in streams]
        for request in requests:
            record_action(settings.home, f"stream {command_name}", request.stream)
        for request in requests:
            if timeout_s > 0:
                with StepPrinter().step(f"{command_name} {request.stream}"):
                    wait_for_state(store, request, timeout_s)
            else:
                click.echo(f"{request.stream}: desired state is now {stream_command.desired}")


def _list_known_streams(
    settings: "Settings", streams: tuple[str, ...], *, is_stopping: bool
) -> tuple[str, ...]:
    """List every stream; for drain and stop, also those with a desired state whose pipeline no longer exists."""
    from penstock.platform.control import control_store_exists
    from penstock.platform.services.stream_catalog import list_stream_names

    known_streams = list_stream_names()
    if not is_stopping or {*streams} <= {*known_streams} or not control_store_exists(settings.control_url):
        return known_streams
    with use_control_store(settings) as store:
        return (*known_streams, *sorted({*store.read_desired_states()} - {*known_streams}))


for history_command in HISTORY_COMMANDS:
    command.add_command(history_command)
command.add_command(drop)
command.add_command(repair)
