"""Questions before a command changes something."""

import sys

import click


def confirm(question: str) -> None:
    """Ask a question, and end the command unless the answer is yes.

    A command without a terminal cannot ask. It says so, and ends with the exit code of wrong usage.
    """
    try:
        click.confirm(question, abort=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError(
            f"{question} There is no terminal to answer on, so nothing was changed. Repeat the command with --yes"
        ) from None
