"""`penstock stream`: say what should become of a stream, and see that it does."""

from typing import TYPE_CHECKING

import click

from penstock.platform.cli.choices import streams_argument
from penstock.platform.cli.context import control_store, current_settings
from penstock.platform.cli.output import Steps, example
from penstock.platform.cli.stream_history import HISTORY

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
    epilog=example(
        "penstock stream start sensor_minute", "penstock stream start sensor_minute archive-sensors"
    )
)
@streams_argument
@_wait
def start(streams: tuple[str, ...], wait: float) -> None:
    """Have streams run; one that runs is left alone, one that failed or is parked is tried at once."""
    _ask(streams, "start", wait)


@command.command(epilog=example("penstock stream drain sensor_minute"))
@streams_argument
@_wait
def drain(streams: tuple[str, ...], wait: float) -> None:
    """Let streams finish their batch, commit it, and stop."""
    _ask(streams, "drain", wait)


@command.command(epilog=example("penstock stream stop sensor_minute"))
@streams_argument
@_wait
def stop(streams: tuple[str, ...], wait: float) -> None:
    """Stop streams now; a batch in flight is cut off, and repeated whole at the next start."""
    _ask(streams, "stop", wait)


@command.command(epilog=example("penstock stream pause sensor_minute"))
@streams_argument
@_wait
def pause(streams: tuple[str, ...], wait: float) -> None:
    """Have streams read nothing for a while.

    They keep their place in the host, and what the clock alone brings goes on: timers, partitions that fall idle.
    """
    _ask(streams, "pause", wait)


@command.command(epilog=example("penstock stream resume sensor_minute"))
@streams_argument
@_wait
def resume(streams: tuple[str, ...], wait: float) -> None:
    """Have streams that were paused read on from where they were."""
    _ask(streams, "resume", wait)


@command.command(epilog=example("penstock stream restart sensor_minute"))
@streams_argument
@_wait
def restart(streams: tuple[str, ...], wait: float) -> None:
    """Drain streams and start them again at once, with their pipelines read anew."""
    _ask(streams, "restart", wait)


def _ask(streams: tuple[str, ...], word: str, wait: float) -> None:
    from penstock.platform.lifecycle import VERBS, ask, check_known, wait_for

    settings, verb = current_settings(), VERBS[word]
    known = _known(settings, streams, to_rest=verb in (VERBS["drain"], VERBS["stop"]))
    for stream in streams:
        check_known(stream, known)
    with control_store(settings) as store:
        for asked in [ask(store, stream, verb, known) for stream in streams]:
            if wait > 0:
                with Steps().step(f"{asked.stream} is {verb.desired}"):
                    wait_for(store, asked, wait)
            else:
                click.echo(f"{asked.stream} is to be {verb.desired}")


def _known(settings: "Settings", streams: tuple[str, ...], *, to_rest: bool) -> tuple[str, ...]:
    """Every stream that there is; to be put to rest also those that somebody wanted, and whose pipeline is gone."""
    from penstock.platform.control import control_exists
    from penstock.platform.streams import stream_names

    known = stream_names()
    if not to_rest or {*streams} <= {*known} or not control_exists(settings.control_url):
        return known
    with control_store(settings) as store:
        return (*known, *sorted({*store.desired()} - {*known}))


for each in HISTORY:
    command.add_command(each)
