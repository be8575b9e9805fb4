"""`penstock down`: the local stack, stopped in order."""

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import Steps, example


@click.command(name="down", epilog=example("penstock down"))
def command() -> None:
    """Stop the feed, the stream host, Dagster and the broker, in this order; nothing is lost.

    `penstock up` goes on where it stopped. Where nothing runs, nothing is done.
    """
    from penstock.platform.stack.manager import manager_of

    manager = manager_of(current_settings())
    with Steps().step("everything is stopped"):
        manager.stop()
