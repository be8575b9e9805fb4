"""`penstock host`: run the stream host."""

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import format_examples

SECTION: Section = "Streams"


@click.group(
    name="host", short_help="Run the process that hosts streams", epilog=format_examples("penstock host run")
)
def command() -> None:
    """Run the process that hosts streams. On a local stack, `penstock up` does this."""


@command.command(
    short_help="Run the desired streams until SIGTERM",
    epilog=format_examples("penstock host run", "PENSTOCK_HOST__LOG_FORMAT=json penstock host run"),
)
def run() -> int:
    """Run the streams that the control store lists as desired. On SIGTERM, drain them and exit.

    A second host takes over the streams that the first one releases. The setting `spark.launch` decides how
    Spark starts: in this process or with spark-submit.
    """
    from penstock.platform.launch.launcher import launch_host
    from penstock.platform.logging_setup import configure_logging

    settings = current_settings()
    configure_logging(settings.host.log_format)
    return launch_host(settings)
