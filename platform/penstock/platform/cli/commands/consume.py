"""`penstock consume`: print the records of a topic, as a member of a consumer group."""

import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.stop_signals import stop_on_signal

if TYPE_CHECKING:
    from penstock.ingestion.consumers import ConsumerRecord

SECTION: Section = "Topics"


@click.command(
    name="consume",
    short_help="Print the records of a topic",
    epilog=format_examples("penstock consume sensors", "penstock consume sensors --group people --pause 0.5"),
)
@click.argument("topic")
@click.option(
    "--group",
    default="penstock-consume",
    show_default=True,
    help="Consumer group; its members share the partitions.",
)
@click.option(
    "--count", type=click.IntRange(min=1), help="Stop after this many records. Default: run until Ctrl-C."
)
@click.option(
    "--headers/--no-headers",
    "with_headers",
    default=None,
    help="Print the headers before each value. Default: for topics of dead letters.",
)
@click.option(
    "--decode",
    is_flag=True,
    help="Print each record as JSON by the contract, whatever the format of the topic.",
)
@click.option("--pause", default=0.0, type=click.FloatRange(min=0), help="Seconds to wait after each poll.")
def command(
    topic: str, group: str, count: int | None, with_headers: bool | None, decode: bool, pause: float
) -> None:
    """Join a consumer group, print its records, and report each change of the assigned partitions.

    Offsets are committed after the records are printed. If a member is killed, another member prints the records
    of its last poll again. With headers, a line is NAME:VALUE,NAME:VALUE, a tab and the value of the record.
    With --decode, a value that cannot be read is printed as it is, and the reason goes to the error output.
    """
    from penstock.ingestion.consumers import PlainConsumer
    from penstock.ingestion.contracts import is_dead_letter_topic

    kafka = current_settings().kafka
    with stop_on_signal() as stop:
        consumer = PlainConsumer(
            kafka.bootstrap_servers,
            topic,
            group,
            _create_printer(
                stop,
                pause,
                _create_value_reader(topic) if decode else bytes,
                with_headers=is_dead_letter_topic(topic) if with_headers is None else with_headers,
            ),
            on_assignment=lambda now: _print_note(
                f"{group}: {now.change}; assignment: {_format_partitions(now.partitions)}"
            ),
            client_settings=kafka.client_config("host"),
        )
        _print_note(f"{consumer.run(stop, count):,} records handled and committed")


def _create_printer(
    stop: threading.Event, pause: float, read_value: Callable[[bytes], bytes], *, with_headers: bool
) -> "Callable[[Sequence[ConsumerRecord]], None]":
    def handle(records: "Sequence[ConsumerRecord]") -> None:
        sys.stdout.buffer.writelines(
            _format_record(record, read_value, with_headers=with_headers) for record in records
        )
        sys.stdout.buffer.flush()
        if pause:
            stop.wait(pause)

    return handle


def _create_value_reader(topic: str) -> Callable[[bytes], bytes]:
    """Return a function that returns a value as JSON, or as it is if it cannot be read."""
    from penstock.ingestion.contracts import load_contract
    from penstock.ingestion.errors import IgnoredRecordError, InvalidRecordError
    from penstock.ingestion.producer.record_serde import create_json_reader
    from penstock.platform.services.schema_registry import open_schema_registry

    read_json = create_json_reader(load_contract(topic), open_schema_registry(current_settings()))

    def read_value(value: bytes) -> bytes:
        try:
            return read_json(value) if value else value
        except (InvalidRecordError, IgnoredRecordError) as error:
            _print_note(f"not decoded: {error}")
            return value

    return read_value


def _format_record(
    record: "ConsumerRecord", read_value: Callable[[bytes], bytes], *, with_headers: bool
) -> bytes:
    headers = b",".join(name.encode() + b":" + value for name, value in record.headers.items())
    return (headers + b"\t" if with_headers else b"") + read_value(record.value) + b"\n"


def _format_partitions(partitions: tuple[int, ...]) -> str:
    return f"partitions {', '.join(map(str, partitions))}" if partitions else "no partition"


def _print_note(text: str) -> None:
    click.echo(text, err=True)
