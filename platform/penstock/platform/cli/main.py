"""Entry point of the command line, and the exit code of each kind of failure."""

import os
import sys

import click

from penstock.core.errors import PenstockError
from penstock.core.file_access import set_file_access
from penstock.platform.cli.command_discovery import DiscoveredGroup
from penstock.platform.cli.failure_report import describe_failure
from penstock.platform.cli.output import format_examples

EXIT_OK, EXIT_USAGE = 0, 2


@click.command(
    cls=DiscoveredGroup,
    epilog=format_examples("penstock up", "penstock status", "penstock table show sensor_minute"),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="penstock", prog_name="penstock")
def penstock() -> None:
    """Run windowed pipelines from Kafka to Delta tables, with every record accounted for.

    Exit codes: 0 for success, 1 if the command failed or found a problem, 2 for wrong usage or configuration.
    """


def main() -> None:
    """Run the command line and exit with its exit code. What it writes is private, unless a setting opens it."""
    set_file_access()
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
        message = describe_failure(error)
        if message is None:
            raise
        code = _print_error(message, error.exit_code if isinstance(error, PenstockError) else 1)
    sys.exit(code or EXIT_OK)


def _print_error(message: str, code: int) -> int:
    click.secho(f"penstock: {message}", fg="red" if code else None, err=True)
    return code
