"""Entry point of the command line: the list of commands, and the exit code of each kind of failure."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module

import click
from click.exceptions import NoSuchCommand

from penstock.core.errors import PenstockError
from penstock.platform.cli.output import format_examples

EXIT_OK, EXIT_USAGE = 0, 2
_CLI_PACKAGE = "penstock.platform.cli"
_COMMAND_MODULES = {
    "up": f"{_CLI_PACKAGE}.up",
    "down": f"{_CLI_PACKAGE}.down",
    "status": f"{_CLI_PACKAGE}.status",
    "logs": f"{_CLI_PACKAGE}.logs",
    "doctor": f"{_CLI_PACKAGE}.doctor",
    "stream": f"{_CLI_PACKAGE}.stream",
    "maintain": f"{_CLI_PACKAGE}.maintain",
    "demo": f"{_CLI_PACKAGE}.demo",
    "run": f"{_CLI_PACKAGE}.run",
    "audit": f"{_CLI_PACKAGE}.audit",
    "check": f"{_CLI_PACKAGE}.check",
    "table": f"{_CLI_PACKAGE}.table",
    "state": f"{_CLI_PACKAGE}.state",
    "statistics": f"{_CLI_PACKAGE}.statistics",
    "quarantine": f"{_CLI_PACKAGE}.quarantine",
    "explain": f"{_CLI_PACKAGE}.explain",
    "topics": f"{_CLI_PACKAGE}.topics",
    "ingest": f"{_CLI_PACKAGE}.ingest",
    "producer": f"{_CLI_PACKAGE}.producer",
    "consume": f"{_CLI_PACKAGE}.consume",
    "host": f"{_CLI_PACKAGE}.host",
    "env": f"{_CLI_PACKAGE}.env",
    "transcript": f"{_CLI_PACKAGE}.transcript",
    "completion": f"{_CLI_PACKAGE}.completion",
}


class LazyGroup(click.Group):
    """Imports a command's module on first use; `modules` maps each name to the module that defines `command`."""

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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown name, suggest the nearest ones without importing them."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            raise NoSuchCommand(error.command_name, possibilities=self._modules, ctx=ctx) from None


@click.command(
    cls=LazyGroup,
    modules=_COMMAND_MODULES,
    epilog=format_examples("penstock up", "penstock status", "penstock table show sensor_minute"),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="penstock", prog_name="penstock")
def penstock() -> None:
    """Run windowed pipelines from Kafka to Delta tables, with every record accounted for.

    Exit codes: 0 for success, 1 if the command failed or found a problem, 2 for wrong usage or configuration.
    """


def main() -> None:
    """Run the command line and exit with its exit code."""
    try:
        code = penstock.main(standalone_mode=False)
    except click.exceptions.Abort:
        code = _print_error("aborted", 130)
    except click.ClickException as error:
        error.show()
        code = EXIT_USAGE
    except BrokenPipeError:
        # The reader of the output has closed it, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_OK
    except Exception as error:
        if not isinstance(error, PenstockError):
            raise
        code = _print_error(str(error), error.exit_code)
    sys.exit(code or EXIT_OK)


def _print_error(message: str, code: int) -> int:
    click.secho(f"penstock: {message}", fg="red" if code else None, err=True)
    return code
