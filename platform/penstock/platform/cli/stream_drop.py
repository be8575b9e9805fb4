"""`penstock stream drop`: remove a stream with its tables and its state."""

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.removal_view import RemovalOptions, removal_options, run_removal


@click.command(
    short_help="Remove a stream, its tables and its state",
    epilog=format_examples(
        "penstock stream drop orders_minute --dry-run",
        "penstock stream drop orders_minute",
        "penstock stream drop orders_minute --yes orders_minute --json",
    ),
)
@click.argument("stream")
@click.option(
    "--keep-tables", is_flag=True, help="Remove the state only; another stream may claim the tables."
)
@removal_options
def drop(stream: str, keep_tables: bool, options: RemovalOptions) -> None:
    """Remove a stream: its tables, its state and its records. The file of the pipeline may be gone.

    The command refuses while the stream runs, or while another pipeline reads its tables or topics. An interrupted
    drop can be repeated. `penstock actions` shows who dropped what.
    """
    from penstock.platform.services.stream_drop import StreamDrop, drop_stream, plan_stream_drop

    settings, request = current_settings(), StreamDrop(stream, keep_tables)
    with use_control_store(settings) as store:
        run_removal(
            settings,
            plan_stream_drop(settings, store, request),
            "stream drop",
            stream,
            lambda report_progress: drop_stream(settings, store, request, report_progress),
            options,
        )
