"""`penstock host`: the process that runs streams."""

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples


@click.group(name="host")
def command() -> None:
    """Run streams. `penstock up` does this for a local stack."""


@command.command(
    epilog=format_examples("penstock host run", "PENSTOCK_HOST__LOG_FORMAT=json penstock host run")
)
def run() -> int:
    """Run the streams that the control store says should run, until SIGTERM; then drain them.

    A second host takes over what the first lets go, and waits for the rest. What begins its Spark is for
    `spark.launch` to say: a session of its own, or spark-submit.
    """
    from penstock.platform.launch import launch_host
    from penstock.platform.logging_setup import configure_logging

    settings = current_settings()
    configure_logging(settings.host.log_format)
    return launch_host(settings)
