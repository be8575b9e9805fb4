"""`penstock stream`: say what should become of a stream, and see that it does."""

import click

from penstock.pipelines.host.control import Desired
from penstock.platform.cli.choices import stream_argument
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
    epilog=example("penstock stream start sensor_minute", "penstock stream start archive-sensors")
)
@stream_argument
@_wait
def start(stream: str, wait: float) -> None:
    """Have a stream run; one that runs is left alone."""
    _ask(stream, Desired.RUNNING, wait)


@command.command(epilog=example("penstock stream drain sensor_minute"))
@stream_argument
@_wait
def drain(stream: str, wait: float) -> None:
    """Let a stream finish its batch, commit it, and stop."""
    _ask(stream, Desired.DRAINED, wait)


@command.command(epilog=example("penstock stream stop sensor_minute"))
@stream_argument
@_wait
def stop(stream: str, wait: float) -> None:
    """Stop a stream now; a batch in flight is cut off, and repeated whole at the next start."""
    _ask(stream, Desired.STOPPED, wait)


def _ask(stream: str, desired: Desired, wait: float) -> None:
    from penstock.platform.lifecycle import ask, wait_for
    from penstock.platform.streams import stream_names

    settings = current_settings()
    with control_store(settings) as store:
        ask(store, stream, desired, stream_names())
        if wait > 0:
            with Steps().step(f"{stream} is {desired}"):
                wait_for(store, stream, desired, wait)
        else:
            click.echo(f"{stream} is to be {desired}")
