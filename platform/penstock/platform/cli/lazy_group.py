"""A command group that imports a command's module on first use, and suggests names for unknown commands."""

from collections.abc import Mapping
from importlib import import_module

import click


class LazyGroup(click.Group):
    """`modules` maps each command name to the module that defines it as `command`."""

    def __init__(self, *, modules: Mapping[str, str], **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]  # the arguments of click.Group
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List every command in the order of `modules`: the most common commands come first."""
        return [*self._modules, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command with that name."""
        if cmd_name not in self._modules:
            return super().get_command(ctx, cmd_name)
        command = import_module(self._modules[cmd_name]).command
        assert isinstance(command, click.Command)
        return command
