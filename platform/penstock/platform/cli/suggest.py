"""`penstock suggest`: what is meant by a beginning of a hashtag, now; as an answer, or as a page to type in."""

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples, print_json
from penstock.platform.cli.stop_signals import stop_on_signal

SUGGESTIONS_TABLE = "hashtags"


@click.command(name="suggest", epilog=format_examples("penstock suggest ra", "penstock suggest --port 8088"))
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
    from penstock.platform.suggestions.page_server import serve_suggestions
    from penstock.platform.suggestions.page_server import to_json as answered
    from penstock.platform.suggestions.suggestion_lookup import SuggestionLookup

    lookup = SuggestionLookup(current_settings().warehouse_path / "latest" / SUGGESTIONS_TABLE)
    if typed is not None:
        if as_json:
            print_json(answered(lookup, typed))
        else:
            click.echo("\n".join(lookup.suggest(typed).suggestions) or "nobody talks of it")
        return
    with stop_on_signal() as stop, serve_suggestions(lookup, port) as address:
        if as_json:
            print_json({"page": address})
        else:
            click.echo(f"type at {address}  (Ctrl-C ends it)")
        stop.wait()
