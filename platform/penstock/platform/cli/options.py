"""Arguments and options that several commands share, and shell completion of names."""

from collections.abc import Callable, Iterable

import click

ShellCompleter = Callable[[click.Context, click.Parameter, str], list[str]]


def complete_names(list_names: Callable[[], Iterable[str]]) -> ShellCompleter:
    """Return the shell completion of an argument with one of these names."""
    return lambda _context, _parameter, prefix: [name for name in list_names() if name.startswith(prefix)]


def list_streams() -> Iterable[str]:
    """Return the name of every stream that a host can run."""
    from penstock.platform.services.stream_catalog import list_stream_names

    return list_stream_names()


stream_argument = click.argument("stream", shell_complete=complete_names(list_streams))
streams_argument = click.argument(
    "streams", metavar="STREAM...", nargs=-1, required=True, shell_complete=complete_names(list_streams)
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
records_per_batch_option = click.option(
    "--records-per-batch", type=click.IntRange(min=1), help="Approximate number of records per batch."
)
