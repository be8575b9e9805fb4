"""`penstock completion`: what a shell needs to complete commands and their options."""

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from penstock.platform.cli.output import format_examples

SHELLS = ("bash", "zsh", "fish")


@click.command(name="completion", epilog=format_examples("penstock completion bash >> ~/.bashrc"))
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def command(shell: str | None) -> None:
    """Print the script that completes this command in a shell."""
    from penstock.platform.cli.main import penstock

    name = shell or Path(os.environ.get("SHELL", "bash")).name
    completion_class = get_completion_class(name)
    if completion_class is None:
        raise click.UsageError(f"SHELL is {name}, which cannot be completed: name one of {', '.join(SHELLS)}")
    click.echo(completion_class(penstock, {}, "penstock", "_PENSTOCK_COMPLETE").source())
