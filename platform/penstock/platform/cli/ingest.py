"""`penstock ingest`: send records to a topic and track each one in a delivery ledger."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.core.names import explain_unknown_name
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples, print_json
from penstock.platform.cli.stop_signals import stop_on_signal

if TYPE_CHECKING:
    from penstock.ingestion.feed import FeedSummary


def _check_source(_context: click.Context, _parameter: click.Parameter, source: str) -> str:
    """Refuse an unknown source and name the nearest one."""
    from penstock.ingestion.sources.source_factory import list_source_kinds

    if source not in list_source_kinds():
        raise click.BadParameter(
            explain_unknown_name("source", source, list_source_kinds(), "penstock ingest --help")
        )
    return source


def _complete_sources(_context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    from penstock.ingestion.sources.source_factory import list_source_kinds

    return [kind for kind in list_source_kinds() if kind.startswith(prefix)]


def _parse_duration(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int:
    from penstock.ingestion.durations import parse_duration_ms

    return 0 if text is None else parse_duration_ms(text)


EXAMPLES = format_examples(
    "penstock ingest sensors --rate 50",
    "penstock ingest clicks --count 1000 --seed 7 --route round-robin",
    "penstock ingest csv --place readings.csv --topic sensors --disorder 0.1 --held-back 30s",
    "penstock ingest flights --speed 3600 --replay-by departed",
    "penstock ingest socket --place 127.0.0.1:9999 --topic lines --text --follow",
    "penstock ingest text --place book.txt --topic lines",
)
POSITIVE_FLOAT = click.FloatRange(min=0, min_open=True)


@click.command(name="ingest", short_help="Send records from a source to a topic", epilog=EXAMPLES)
@click.argument("source", callback=_check_source, shell_complete=_complete_sources)
@click.option("--topic", default="", help="Target topic. Default: the topic with the source's name.")
@click.option("--place", default="", help="File, folder, URL or host:port to read from.")
@click.option("--rate", type=POSITIVE_FLOAT, help="Records per second. Default: as fast as possible.")
@click.option("--speed", type=POSITIVE_FLOAT, help="Replay speed, as a multiple of the records' own pace.")
@click.option("--replay-by", help="Time field that --speed follows. Default: the event time.")
@click.option("--disorder", default=0.0, type=click.FloatRange(0, 1), help="Share of the records to delay.")
@click.option(
    "--held-back",
    "disorder_ms",
    callback=_parse_duration,
    help="Longest delay of --disorder, for example 30s; at most a few thousand records.",
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    help="Stop after this many records. Default: at the end of the source.",
)
@click.option("--seed", type=int, help="Random seed. Default: 1.")
@click.option("--follow", is_flag=True, help="Keep reading: watch the folder for new files, or reconnect.")
@click.option("--text", is_flag=True, help="Treat lines as text instead of JSON.")
@click.option(
    "--route",
    default="key",
    show_default=True,
    help="Partitioner: key, round-robin, or module:function that takes (key, sequence).",
)
@click.option(
    "--producer",
    default="",
    help="Name of the ledger. A second run with this name resumes where the first ended.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(count: int | None, as_json: bool, **options: str) -> int:
    """Send records from a source to a topic. The producer's ledger tracks what the broker acknowledged.

    SOURCE is json-lines, csv, parquet, text or log for files; http, sse or socket for the network; or the name of
    a topic with a generator, such as sensors.

    Ctrl-C waits for the records in flight; the next run resumes from there. `penstock producer where` prints the
    offset of each record.
    """
    from penstock.ingestion.feed import FeedLimits
    from penstock.platform.cli.feed_progress import show_progress
    from penstock.platform.services.feeds import FeedRequest, open_feed

    feed_request = FeedRequest(**options)  # type: ignore[arg-type]  # click passes the declared option types
    feed = open_feed(current_settings(), feed_request)
    with (
        stop_on_signal() as stop,
        show_progress(
            f"{feed_request.producer_name} to {feed.contract.topic} at {feed.bootstrap}", count
        ) as on_progress,
    ):
        summary = feed.run(stop, on_progress, FeedLimits(count=count))
    if as_json:
        print_json(
            {**asdict(summary), "topic": feed.contract.topic, "acknowledged": summary.acknowledged_records}
        )
    else:
        click.echo(_describe_summary(summary))
    return 0 if summary.complete else 1


def _describe_summary(summary: "FeedSummary") -> str:
    seconds = summary.elapsed_ms / 1_000
    rate = f" in {seconds:.1f} s ({summary.acknowledged_records / seconds:,.0f}/s)" if seconds else ""
    text = (
        f"{summary.acknowledged_records:,} records acknowledged{rate}, "
        f"{summary.dead_letters:,} of them dead letters"
    )
    return (
        text if summary.complete else f"{text}; some records are still in flight: the next run resolves them"
    )
