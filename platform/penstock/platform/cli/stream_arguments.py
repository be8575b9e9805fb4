"""Arguments for stream names, with shell completion."""

import click


def _complete_streams(_context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    from penstock.platform.services.stream_catalog import list_stream_names

    return [name for name in list_stream_names() if name.startswith(prefix)]


stream_argument = click.argument("stream", shell_complete=_complete_streams)
streams_argument = click.argument(
    "streams", metavar="STREAM...", nargs=-1, required=True, shell_complete=_complete_streams
)
