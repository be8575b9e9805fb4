"""`penstock suggest`: what is meant by a beginning of a hashtag, now; as an answer, or as a page to type in."""

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.interruption import stopped_by_signal
from penstock.platform.cli.output import example, print_json

TABLE = "hashtags"


@click.command(name="suggest", epilog=example("penstock suggest ra", "penstock suggest --port 8088"))
@click.argument("typed", required=False)
@click.option(
    "--port",
    default=0,
    show_default="one that is free",
    type=click.IntRange(0, 65535),
    help="Where the page is served, on this machine only.",
)
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def command(typed: str | None, port: int, as_json: bool) -> None:
    """Say what TYPED is the beginning of, by the table that the stream `hashtags` keeps; or serve a page for it.

    In the page one types, and sees the suggestions change while people talk. It also answers
    /suggest?typed=ra with JSON. Ctrl-C ends it.
    """
    from penstock.platform.suggestions.lookup import Lookup
    from penstock.platform.suggestions.server import as_json as answered
    from penstock.platform.suggestions.server import serving

    lookup = Lookup(current_settings().tables / "latest" / TABLE)
    if typed is not None:
        if as_json:
            print_json(answered(lookup, typed))
        else:
            click.echo("\n".join(lookup.of(typed).suggestions) or "nobody talks of it")
        return
    with stopped_by_signal() as stop, serving(lookup, port) as address:
        if as_json:
            print_json({"page": address})
        else:
            click.echo(f"type at {address}  (Ctrl-C ends it)")
        stop.wait()
