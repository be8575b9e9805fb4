"""`penstock ingest`: sends the records of a source to a topic."""

from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import complete_names
from penstock.platform.cli.output import format_examples, print_json
from penstock.platform.cli.refused_view import allow_invalid_option, print_refused
from penstock.platform.cli.stop_signals import stop_on_signal

if TYPE_CHECKING:
    from penstock.ingestion.feed import FeedSummary

SECTION: Section = "Topics"


class _IngestCommand(click.Command):
    """Adds the options of all kinds of sources, and a section of the help that lists the kinds."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the declared parameters, those of the kinds, and the help option last."""
        *parameters, help_option = super().get_params(ctx)
        return [*parameters, *_kind_parameters(), help_option]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the kinds of sources with their options."""
        from penstock.ingestion.sources.source_discovery import discover_source_kinds

        super().format_options(ctx, formatter)
        with formatter.section("Sources"):
            formatter.write_dl(
                [
                    (name, f"{kind.summarize()} {' '.join(option.flag_name for option in kind.options)}")
                    for name, kind in discover_source_kinds().items()
                ]
            )


@cache
def _kind_parameters() -> tuple[click.Parameter, ...]:
    from penstock.ingestion.sources.source_discovery import list_source_options

    return tuple(
        click.Option([option.flag_name], is_flag=option.is_flag, default=None, help=option.help)
        for option in list_source_options()
    )


def _check_source(_context: click.Context, _parameter: click.Parameter, source: str) -> str:
    """Refuse an unknown name. A `module:Class` is imported later, when the source opens."""
    from penstock.ingestion.errors import SourceOptionsError
    from penstock.ingestion.sources.source_discovery import find_source_kind

    if ":" in source:
        return source
    try:
        find_source_kind(source)
    except SourceOptionsError as error:
        raise click.BadParameter(str(error)) from error
    return source


def _list_sources() -> Iterable[str]:
    from penstock.ingestion.sources.source_discovery import list_source_kinds

    return list_source_kinds()


def _parse_options(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    for text in texts:
        if "=" not in text:
            raise click.BadParameter(f"{text!r} is not an option. Use NAME=VALUE, such as limit=100.")
    return {
        name.strip().replace("-", "_"): value for name, _, value in (text.partition("=") for text in texts)
    }


EXAMPLES = format_examples(
    "penstock ingest sensors --rate 50",
    "penstock ingest clicks --count 1000 --seed 7 --route round-robin",
    "penstock ingest csv --path readings.csv --topic sensors --disorder 0.1 --max-delay 30s",
    "penstock ingest flights --speed 3600 --replay-by departed",
    "penstock ingest socket --address 127.0.0.1:9999 --topic lines --text --follow",
    "penstock ingest text --path book.txt --topic lines",
    "penstock ingest mypackage.mymodule:MySource --topic sensors --option limit=100",
)


@click.command(
    cls=_IngestCommand, name="ingest", epilog=EXAMPLES, short_help="Send records from a source to a topic"
)
@click.argument("source", callback=_check_source, shell_complete=complete_names(_list_sources))
@click.option("--topic", default="", help="The topic; default: the name of the source.")
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many records.")
@click.option(
    "--route",
    default="key",
    show_default=True,
    help="The partitioner: key, round-robin, or module:function of (key, sequence).",
)
@click.option(
    "--producer", default="", help="The name of the ledger. A run with the same name resumes the one before."
)
@click.option(
    "--option",
    "own_options",
    multiple=True,
    callback=_parse_options,
    help="An option of your own source, as NAME=VALUE. Repeatable.",
)
@allow_invalid_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(  # each parameter is an option
    source: str,
    topic: str,
    route: str,
    producer: str,
    own_options: dict[str, str],
    count: int | None,
    allow_invalid: bool,
    as_json: bool,
    **kind_options: Any,
) -> int:
    """Send the records of SOURCE to a topic, and record each acknowledgement in the ledger of the producer.

    SOURCE is a name from the list below, or module:Class for your own source.

    Ctrl-C flushes the records in flight. The next run resumes there. `penstock producer where` shows the address of
    each record.

    Records that violate the contract are refused: they go to the dead-letter topic, and the command prints the
    reasons. The exit code is 1 if a record is refused, unless you accept this with --allow-invalid.
    """
    from penstock.ingestion.feed import FeedLimits
    from penstock.platform.cli.feed_progress import show_progress
    from penstock.platform.services.feeds import FeedRequest, open_feed

    options = {
        name: value for name, value in kind_options.items() if value is not None and value is not False
    }
    feed_request = FeedRequest(source, topic, options | own_options, route, producer)
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
        if summary.refused:
            where = (
                f"Refused records are in the topic {feed.contract.dead_letter_topic}. "
                f"List them with `penstock quarantine list {feed.contract.topic}`."
            )
            print_refused(summary.refused, where)
    return 0 if summary.complete and (allow_invalid or not summary.dead_letters) else 1


def _describe_summary(summary: "FeedSummary") -> str:
    seconds = summary.elapsed_ms / 1_000
    rate = f" in {seconds:.1f} s ({summary.acknowledged_records / seconds:,.0f}/s)" if seconds else ""
    refused = f", {summary.dead_letters:,} of them refused" if summary.dead_letters else ""
    text = f"{summary.acknowledged_records:,} records acknowledged{rate}{refused}"
    return (
        text if summary.complete else f"{text}; some records are still in flight: the next run resolves them"
    )
