"""`penstock ingest`: records into a topic, each accounted for in a ledger."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples, print_json
from penstock.platform.cli.stop_signals import stop_on_signal

if TYPE_CHECKING:
    from penstock.ingestion.feed import FeedSummary


def _check_source(_context: click.Context, _parameter: click.Parameter, source: str) -> str:
    """Refuse a source that there is not, with those that there are."""
    from penstock.ingestion.sources.source_factory import list_source_kinds

    if source not in list_source_kinds():
        raise click.BadParameter(f"{source!r} is no source; there are {', '.join(list_source_kinds())}")
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


@click.command(name="ingest", epilog=EXAMPLES)
@click.argument("source", callback=_check_source, shell_complete=_complete_sources)
@click.option("--topic", default="", help="Where to; a source of the same name as a topic needs none.")
@click.option("--place", default="", help="A file, a folder, a URL, or host:port.")
@click.option("--rate", type=POSITIVE_FLOAT, help="Records a second; else at once.")
@click.option("--speed", type=POSITIVE_FLOAT, help="Times the records' own pace.")
@click.option("--replay-by", help="The field whose times --speed goes by; the event time without.")
@click.option("--disorder", default=0.0, type=click.FloatRange(0, 1), help="Share of records held back.")
@click.option(
    "--held-back",
    "disorder_ms",
    callback=_parse_duration,
    help="By how much at most, as in 30s; not beyond some thousand records.",
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many; else with the source.")
@click.option("--seed", type=int, help="Where random numbers begin; 1 without.")
@click.option("--follow", is_flag=True, help="Look for new files in the folder for ever; connect again.")
@click.option("--text", is_flag=True, help="Lines are text, no JSON.")
@click.option(
    "--route",
    default="key",
    show_default=True,
    help="What decides on the partition: key, round-robin, or module:function of (key, sequence).",
)
@click.option(
    "--producer", default="", help="The ledger's name; a second run of a name goes on where the first ended."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary for programs.")
def command(count: int | None, as_json: bool, **options: str) -> int:
    """Write a source's records into a topic. What the broker acknowledged is in the producer's ledger.

    SOURCE is json-lines, csv, parquet, text or log for files, http, sse or socket for what comes over the network,
    and else a topic whose records are made up, such as sensors.

    Ctrl-C finishes what is in flight; the next run goes on from there. `penstock producer where` says where each
    record is.
    """
    from penstock.ingestion.feed import FeedLimits
    from penstock.platform.cli.feed_progress import show_progress
    from penstock.platform.services.feeds import FeedRequest, open_feed

    feed_request = FeedRequest(**options)  # type: ignore[arg-type]  # click hands over what the options are declared as
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
    return text if summary.complete else f"{text}; others were in flight: the next run settles them"
