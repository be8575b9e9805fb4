"""`penstock consume`: print records of a topic, or of a socket without a broker in between."""

import sys
import threading
from collections.abc import Callable, Iterable

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.stop_signals import stop_on_signal


@click.group(
    name="consume",
    short_help="Print records with a plain consumer",
    epilog=format_examples("penstock consume topic sensors", "penstock consume socket 127.0.0.1:9999"),
)
def command() -> None:
    """Print records with a plain consumer, to show what a broker adds.

    A slow consumer of a topic falls behind but loses nothing. A consumer that dies resumes at its committed
    offset, so it sees each record at least once. A slow reader of a socket blocks the sender, and a reader that
    dies loses its records.
    """


_pause = click.option(
    "--pause", default=0.0, type=click.FloatRange(min=0), help="Seconds to wait after each poll."
)
_count = click.option(
    "--count", type=click.IntRange(min=1), help="Stop after this many records. Default: run until Ctrl-C."
)


@command.command(
    short_help="Consume a topic as a member of a consumer group",
    epilog=format_examples(
        "penstock consume topic sensors", "penstock consume topic sensors --group people --pause 0.5"
    ),
)
@click.argument("topic")
@click.option(
    "--group",
    default="penstock-consume",
    show_default=True,
    help="Consumer group; its members share the partitions.",
)
@_count
@_pause
def topic(topic: str, group: str, count: int | None, pause: float) -> None:
    """Join a consumer group, print its records, and report each change of the assigned partitions.

    Offsets are committed after the records are printed. If a member is killed, another member prints the records
    of its last poll again.
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
                f"{group}: {now.change}; assignment: {_format_partitions(now.partitions)}"
            ),
            client_settings=kafka.client_config("host"),
        )
        _print_note(f"{consumer.run(stop, count):,} records handled and committed")


@command.command(
    short_help="Read lines from a socket, without a broker",
    epilog=format_examples("penstock consume socket 127.0.0.1:9999"),
)
@click.argument("address", metavar="HOST:PORT")
@_count
@_pause
def socket(address: str, count: int | None, pause: float) -> None:
    """Print lines from a socket server, for example `nc -lk 9999`. Nothing is stored."""
    from penstock.ingestion.consumers import consume_without_broker
    from penstock.ingestion.sources.socket_source import open_socket_lines

    with stop_on_signal() as stop:
        handle = _create_printer(stop, pause)
        _print_note(
            f"{consume_without_broker(open_socket_lines(address), handle, stop, count):,} records handled"
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
