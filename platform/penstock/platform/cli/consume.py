"""`penstock consume`: a plain consumer of a topic, and beside it one of a socket with no broker between."""

import sys
import threading
from collections.abc import Callable, Iterable

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.stop_signals import stop_on_signal


@click.group(name="consume")
def command() -> None:
    """Print records as a plain consumer sees them, to see what a broker adds.

    Through a topic a slow consumer falls behind and loses nothing, and a dead one goes on where it was: each
    record at least once. From a socket a slow one holds its sender back, and what a dead one had is gone.
    """


_pause = click.option(
    "--pause", default=0.0, type=click.FloatRange(min=0), help="Seconds of work for each handful of records."
)
_count = click.option("--count", type=click.IntRange(min=1), help="End after so many; else with Ctrl-C.")


@command.command(
    epilog=format_examples(
        "penstock consume topic sensors", "penstock consume topic sensors --group people --pause 0.5"
    )
)
@click.argument("topic")
@click.option(
    "--group", default="penstock-consume", show_default=True, help="Members of a group share the topic."
)
@_count
@_pause
def topic(topic: str, group: str, count: int | None, pause: float) -> None:
    """Join a group, print its records, and tell which partitions come and go as others join and leave.

    What was printed is committed after that, so a member that is killed leaves its last handful to the next.
    """
    from penstock.ingestion.consumers import PlainConsumer

    kafka = current_settings().kafka
    with stop_on_signal() as stop:
        handle = _create_printer(stop, pause)
        consumer = PlainConsumer(
            kafka.bootstrap_servers,
            topic,
            group,
            lambda records: handle(record.value for record in records),
            on_assignment=lambda now: _print_note(
                f"{group}: {now.change}; holds {_format_partitions(now.partitions)}"
            ),
            client_settings=kafka.client_config("host"),
        )
        _print_note(f"{consumer.run(stop, count):,} records handled and committed")


@command.command(epilog=format_examples("penstock consume socket 127.0.0.1:9999"))
@click.argument("place", metavar="HOST:PORT")
@_count
@_pause
def socket(place: str, count: int | None, pause: float) -> None:
    """Print lines straight from whoever serves them (`nc -lk 9999`); nothing is written down anywhere."""
    from penstock.ingestion.consumers import consume_without_broker
    from penstock.ingestion.sources.source_factory import open_socket_lines

    with stop_on_signal() as stop:
        handle = _create_printer(stop, pause)
        _print_note(
            f"{consume_without_broker(open_socket_lines(place), handle, stop, count):,} records handled"
        )


def _create_printer(stop: threading.Event, pause: float) -> Callable[[Iterable[bytes]], None]:
    def handle(values: Iterable[bytes]) -> None:
        sys.stdout.buffer.writelines(value + b"\n" for value in values)
        sys.stdout.buffer.flush()
        if pause:
            stop.wait(pause)

    return handle


def _format_partitions(partitions: tuple[int, ...]) -> str:
    return f"partitions {', '.join(map(str, partitions))}" if partitions else "no partition"


def _print_note(text: str) -> None:
    click.echo(text, err=True)
