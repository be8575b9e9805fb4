"""The entry point: which commands there are, and what each kind of failure ends with."""

import os
import sys

import click

from penstock.platform.cli.lazy import LazyGroup
from penstock.platform.cli.output import example

DONE, NOT_RIGHT, WRONG_USAGE = 0, 1, 2
_HERE = "penstock.platform.cli"
_COMMANDS = {
    "up": f"{_HERE}.up",
    "down": f"{_HERE}.down",
    "status": f"{_HERE}.status",
    "logs": f"{_HERE}.logs",
    "doctor": f"{_HERE}.doctor",
    "stream": f"{_HERE}.stream",
    "maintain": f"{_HERE}.maintain",
    "demo": f"{_HERE}.demo",
    "run": f"{_HERE}.run",
    "audit": f"{_HERE}.audit",
    "check": f"{_HERE}.check",
    "table": f"{_HERE}.table",
    "suggest": f"{_HERE}.suggest",
    "state": f"{_HERE}.state",
    "statistics": f"{_HERE}.statistics",
    "quarantine": f"{_HERE}.quarantine",
    "explain": f"{_HERE}.explain",
    "topics": f"{_HERE}.topics",
    "ingest": f"{_HERE}.ingest",
    "producer": f"{_HERE}.producer",
    "consume": f"{_HERE}.consume",
    "host": f"{_HERE}.host",
    "env": f"{_HERE}.env",
    "transcript": f"{_HERE}.transcript",
    "completion": f"{_HERE}.completion",
}


@click.command(
    cls=LazyGroup,
    modules=_COMMANDS,
    epilog=example("penstock up", "penstock status", "penstock table show sensor_minute"),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="penstock", prog_name="penstock")
def penstock() -> None:
    """Kafka in, windowed results in Delta tables out, every record accounted for.

    Commands end with 0 when done, 1 when the thing asked about is not as it should be, and 2 when they
    were used or configured wrongly.
    """


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        code = penstock.main(standalone_mode=False)
    except click.exceptions.Abort:
        code = _say("stopped: nothing more is done", 130)
    except click.ClickException as error:
        error.show()
        code = WRONG_USAGE
    except BrokenPipeError:
        # The reader of our output left, as `head` does; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    except Exception as error:
        if (code := _exit_code(error)) is None:
            raise
        _say(str(error), code)
    sys.exit(code or DONE)


def _exit_code(error: Exception) -> int | None:
    """What an error of ours ends with; None for what nobody foresaw, whose traceback is wanted."""
    # Loaded only when something failed: most commands need none of these packages.
    from penstock.infra.environments.errors import UnknownEnvironmentError
    from penstock.infra.errors import InfraError
    from penstock.ingestion.errors import ContractError, IngestionError, SourceOptionsError
    from penstock.pipelines.errors import DefinitionError, PipelineError, TranscriptError
    from penstock.platform.errors import PlatformError
    from penstock.quality.errors import QualityError

    if isinstance(error, PlatformError | QualityError):
        return error.exit_code
    wrong = (ContractError, DefinitionError, SourceOptionsError, TranscriptError, UnknownEnvironmentError)
    if isinstance(error, wrong):
        return WRONG_USAGE
    known = (InfraError, IngestionError, PipelineError)
    return NOT_RIGHT if isinstance(error, known) else None


def _say(sentence: str, code: int) -> int:
    click.secho(f"penstock: {sentence}", fg="red" if code else None, err=True)
    return code
