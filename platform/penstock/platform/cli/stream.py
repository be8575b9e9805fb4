"""`penstock stream`: say what should become of a stream, and see that it does."""

from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.output import StepPrinter, format_examples
from penstock.platform.cli.stream_arguments import streams_argument
from penstock.platform.cli.stream_history import HISTORY_COMMANDS

if TYPE_CHECKING:
    from penstock.platform.settings import Settings


@click.group(name="stream")
def command() -> None:
    """Steer streams: pipelines by their names, and `archive-TOPIC`, which keeps a topic in Delta.

    What should run is written to the control store; the stream host makes it so.
    """


_wait = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait until it is so; 0 to only say it.",
)


@command.command(
    epilog=format_examples(
        "penstock stream start sensor_minute", "penstock stream start sensor_minute archive-sensors"
    )
)
@streams_argument
@_wait
def start(streams: tuple[str, ...], wait: float) -> None:
    """Run streams. A running stream is not touched; a failed stream is retried immediately."""
    _request_states(streams, "start", wait)


@command.command(epilog=format_examples("penstock stream drain sensor_minute"))
@streams_argument
@_wait
def drain(streams: tuple[str, ...], wait: float) -> None:
    """Let streams finish their batch, commit it, and stop."""
    _request_states(streams, "drain", wait)


@command.command(epilog=format_examples("penstock stream stop sensor_minute"))
@streams_argument
@_wait
def stop(streams: tuple[str, ...], wait: float) -> None:
    """Stop streams now; a batch in flight is cut off, and repeated whole at the next start."""
    _request_states(streams, "stop", wait)


@command.command(epilog=format_examples("penstock stream pause sensor_minute"))
@streams_argument
@_wait
def pause(streams: tuple[str, ...], wait: float) -> None:
    """Have streams read nothing for a while.

    They keep their place in the host, and what the clock alone brings goes on: timers, partitions that fall idle.
    """
    _request_states(streams, "pause", wait)


@command.command(epilog=format_examples("penstock stream resume sensor_minute"))
@streams_argument
@_wait
def resume(streams: tuple[str, ...], wait: float) -> None:
    """Have streams that were paused read on from where they were."""
    _request_states(streams, "resume", wait)


@command.command(epilog=format_examples("penstock stream restart sensor_minute"))
@streams_argument
@_wait
def restart(streams: tuple[str, ...], wait: float) -> None:
    """Drain streams and start them again at once, with their pipelines read anew."""
    _request_states(streams, "restart", wait)


def _request_states(streams: tuple[str, ...], command_name: str, timeout_s: float) -> None:
    from penstock.platform.services.stream_lifecycle import (
        STREAM_COMMANDS,
        check_stream_exists,
        request_state,
        wait_for_state,
    )

    settings, stream_command = current_settings(), STREAM_COMMANDS[command_name]
    known_streams = _list_known_streams(
        settings, streams, is_stopping=stream_command in (STREAM_COMMANDS["drain"], STREAM_COMMANDS["stop"])
    )
    for stream in streams:
        check_stream_exists(stream, known_streams)
    with use_control_store(settings) as store:
        for request in [request_state(store, stream, stream_command, known_streams) for stream in streams]:
            if timeout_s > 0:
                with StepPrinter().step(f"{request.stream} is {stream_command.desired}"):
                    wait_for_state(store, request, timeout_s)
            else:
                click.echo(f"{request.stream} is to be {stream_command.desired}")


def _list_known_streams(
    settings: "Settings", streams: tuple[str, ...], *, is_stopping: bool
) -> tuple[str, ...]:
    """Every stream that there is; to be put to rest also those that somebody wanted, and whose pipeline is gone."""
    from penstock.platform.control import control_store_exists
    from penstock.platform.services.stream_catalog import list_stream_names

    known_streams = list_stream_names()
    if not is_stopping or {*streams} <= {*known_streams} or not control_store_exists(settings.control_url):
        return known_streams
    with use_control_store(settings) as store:
        return (*known_streams, *sorted({*store.read_desired_states()} - {*known_streams}))


for history_command in HISTORY_COMMANDS:
    command.add_command(history_command)
