"""`penstock completion`: print the completion script of a shell."""

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.output import format_examples

SECTION: Section = "Infrastructure and shell"

SHELLS = ("bash", "zsh", "fish")


@click.command(
    name="completion",
    short_help="Print the completion script for a shell",
    epilog=format_examples("penstock completion bash >> ~/.bashrc"),
)
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def command(shell: str | None) -> None:
    """Print the script that makes a shell complete commands, options and names.

    Without a SHELL, the variable of that name decides.
    """
    from penstock.platform.cli.main import penstock

    name = shell or Path(os.environ.get("SHELL", "bash")).name
    completion_class = get_completion_class(name)
    if completion_class is None:
        raise click.UsageError(
            f"completion does not support the shell {name!r}; name one of: {', '.join(SHELLS)}"
        )
    click.echo(completion_class(penstock, {}, "penstock", "_PENSTOCK_COMPLETE").source())
