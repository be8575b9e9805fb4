"""`penstock down`: the local stack, stopped in order."""

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import StepPrinter, format_examples


@click.command(name="down", epilog=format_examples("penstock down"))
def command() -> None:
    """Stop the feed, the stream host, Dagster and the broker, in this order; nothing is lost.

    `penstock up` goes on where it stopped. Where nothing runs, nothing is done.
    """
    from penstock.platform.stack.manager import stack_manager

    manager = stack_manager(current_settings())
    with StepPrinter().step("everything is stopped"):
        manager.stop()
