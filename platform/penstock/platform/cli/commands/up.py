"""`penstock up`: start the local stack."""

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import cli_command, format_examples
from penstock.platform.cli.steps import StepPrinter

SECTION: Section = "Local stack"


@click.command(
    name="up",
    short_help="Start the local stack",
    epilog=format_examples("penstock up", "PENSTOCK_DAGSTER__PORT=3100 penstock up"),
)
@click.option(
    "--wait",
    default=90.0,
    show_default=True,
    help="Seconds to wait for the first results; 0 to return immediately.",
)
def command(wait: float) -> int:
    """Start broker, feed, stream host, console and Dagster.

    Programs that already run are not affected. If the start fails, nothing keeps running. With the feed disabled,
    the command does not wait for results, because nothing may send records.
    """
    from penstock.platform.cli.commands.status import show_status
    from penstock.platform.host.quality_pages import QUALITY_URL_PREFIX, quality_url
    from penstock.platform.services.stream_catalog import find_stream_error, table_show_command
    from penstock.platform.stack.first_rows import wait_for_first_rows
    from penstock.platform.stack.startup import bring_up_stack

    settings, steps, command_name = current_settings(), StepPrinter(), cli_command()
    bring_up_stack(settings, steps)
    broken_streams = [stream for stream in settings.streams if find_stream_error(stream) is not None]
    missing_streams: tuple[str, ...] = ()
    if wait > 0 and settings.feed.enabled:
        valid_streams = [stream for stream in settings.streams if stream not in broken_streams]
        with steps.step("wait for the first results"), use_control_store(settings) as store:
            missing_streams = wait_for_first_rows(store, valid_streams, wait)
    click.echo()
    show_status(settings)
    click.echo(f"\nConsole            {settings.console_url}")
    click.echo(f"Dagster's UI       http://127.0.0.1:{settings.dagster.port}")
    if host_url := quality_url(settings).removesuffix(QUALITY_URL_PREFIX):
        click.echo(f"Stream host        {host_url}/  (metrics, health, data quality)")
    for stream in settings.streams:
        note = f"no results yet: {command_name} status" if stream in missing_streams else ""
        note = "cannot start until its file is fixed" if stream in broken_streams else note
        click.echo(
            f"Results            {table_show_command(stream, command_name)}{f'  ({note})' if note else ''}"
        )
    click.echo(f"Status             {command_name} status\nStop               {command_name} down")
    return 1 if missing_streams or broken_streams else 0
