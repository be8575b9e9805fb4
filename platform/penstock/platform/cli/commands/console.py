"""`penstock console`: serve the web console."""

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import format_examples
from penstock.platform.cli.stop_signals import stop_on_signal

SECTION: Section = "Local stack"


@click.command(
    name="console",
    short_help="Serve the web console",
    epilog=format_examples("penstock console", "PENSTOCK_CONSOLE__PORT=3031 penstock console"),
)
def command() -> None:
    """Serve the web console until SIGTERM or Ctrl-C. On a local stack, `penstock up` does this.

    The console shows topics, streams and tables while they run. It reads the control store, the tables and the
    broker that the settings name, so it also runs beside an environment or another machine's stack.
    """
    from penstock.platform.console.server import serve_console

    settings = current_settings()
    with stop_on_signal() as stop:
        click.echo(f"Console: {settings.console_url}", err=True)
        serve_console(settings, stop)
