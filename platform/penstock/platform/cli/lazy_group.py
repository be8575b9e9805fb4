"""A group of commands that loads a command's module when that command is wanted, not before."""

from collections.abc import Mapping
from importlib import import_module

import click


class LazyGroup(click.Group):
    """`modules` names, for each command, the module that holds it as `command`."""

    def __init__(self, *, modules: Mapping[str, str], **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]  # click's own arguments, handed on
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order given: what a person does first comes first."""
        return [*self._modules, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command of that name."""
        if cmd_name not in self._modules:
            return super().get_command(ctx, cmd_name)
        command = import_module(self._modules[cmd_name]).command
        assert isinstance(command, click.Command)
        return command
