"""Names that commands take, completed from what there is."""

import click


def _streams(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from penstock.platform.streams import stream_names

    return [name for name in stream_names() if name.startswith(typed)]


stream_argument = click.argument("stream", shell_complete=_streams)
streams_argument = click.argument(
    "streams", metavar="STREAM...", nargs=-1, required=True, shell_complete=_streams
)
