"""Finds the commands. Each module of `cli.commands` defines the command of its name, and its section of help."""

from importlib import import_module
from keyword import iskeyword
from pkgutil import iter_modules
from types import ModuleType
from typing import Literal, get_args

import click
from click.exceptions import NoSuchCommand

from penstock.platform.cli import commands

Section = Literal[
    "Local stack", "Streams", "Results and quality", "Pipelines", "Topics", "Infrastructure and shell"
]


class DiscoveredGroup(click.Group):
    """Imports the module of a command on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(module.name.rstrip("_") for module in iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with that name."""
        return _load_module(cmd_name).command if cmd_name in self.list_commands(ctx) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown name, suggest the nearest ones."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            names = self.list_commands(ctx)
            raise NoSuchCommand(error.command_name, possibilities=names, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each section with their short help texts."""
        names = self.list_commands(ctx)
        name_width = max(map(len, names))
        limit = formatter.width - name_width - 6
        for section in get_args(Section):
            rows = [
                (name.ljust(name_width), module.command.get_short_help_str(limit))
                for name, module in ((name, _load_module(name)) for name in names)
                if section == module.SECTION
            ]
            with formatter.section(section):
                formatter.write_dl(rows)


def _load_module(name: str) -> ModuleType:
    """Import the module of a command; one with a keyword of Python as its name ends with an underscore."""
    return import_module(f"{commands.__name__}.{name}{'_' if iskeyword(name) else ''}")
