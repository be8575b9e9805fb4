"""`penstock down`: stop the local stack."""

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.steps import StepPrinter

SECTION: Section = "Local stack"


@click.command(name="down", short_help="Stop the local stack", epilog=format_examples("penstock down"))
def command() -> None:
    """Stop the feed, the stream host, Dagster and the broker, in this order. No data is lost.

    `penstock up` resumes where the stack stopped. If nothing runs, the command does nothing.
    """
    from penstock.platform.stack.manager import stack_manager

    manager = stack_manager(current_settings())
    with StepPrinter().step("stop the stack"):
        manager.stop()
