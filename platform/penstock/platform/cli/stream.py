"""`penstock stream`: say what should become of a stream, and see that it does."""

import click

from penstock.pipelines.host.control import Desired
from penstock.platform.cli.choices import streams_argument
from penstock.platform.cli.context import control_store, current_settings
from penstock.platform.cli.output import Steps, example


@click.group(name="stream")
def command() -> None:
    """Start, drain and stop streams: pipelines by their names, and `archive-TOPIC`, which keeps a topic in Delta.

    What should run is written to the control store; the stream host makes it so.
    """


_wait = click.option(
    "--wait", default=60.0, show_default=True, help="Seconds to wait until it is so; 0 to only say it."
)


@command.command(
    epilog=example(
        "penstock stream start sensor_minute", "penstock stream start sensor_minute archive-sensors"
    )
)
@streams_argument
@_wait
def start(streams: tuple[str, ...], wait: float) -> None:
    """Have streams run; one that runs is left alone."""
    _ask(streams, Desired.RUNNING, wait)


@command.command(epilog=example("penstock stream drain sensor_minute"))
@streams_argument
@_wait
def drain(streams: tuple[str, ...], wait: float) -> None:
    """Let streams finish their batch, commit it, and stop."""
    _ask(streams, Desired.DRAINED, wait)


@command.command(epilog=example("penstock stream stop sensor_minute"))
@streams_argument
@_wait
def stop(streams: tuple[str, ...], wait: float) -> None:
    """Stop streams now; a batch in flight is cut off, and repeated whole at the next start."""
    _ask(streams, Desired.STOPPED, wait)


def _ask(streams: tuple[str, ...], desired: Desired, wait: float) -> None:
    from penstock.platform.lifecycle import ask, check_known, wait_for
    from penstock.platform.streams import stream_names

    settings, known = current_settings(), stream_names()
    for stream in streams:
        check_known(stream, known)
    with control_store(settings) as store:
        for stream in streams:
            ask(store, stream, desired, known)
        for stream in streams:
            if wait > 0:
                with Steps().step(f"{stream} is {desired}"):
                    wait_for(store, stream, desired, wait)
            else:
                click.echo(f"{stream} is to be {desired}")
