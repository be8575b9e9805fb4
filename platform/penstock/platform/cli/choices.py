"""Names that commands take, completed from what there is."""

import click


def _streams(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from penstock.pipelines.catalog import names

    return [name for name in names() if name.startswith(typed)]


stream_argument = click.argument("stream", shell_complete=_streams)
