"""`penstock suggest`: complete a hashtag prefix, on the command line or in a web page."""

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples, print_json
from penstock.platform.cli.stop_signals import stop_on_signal

SUGGESTIONS_TABLE = "hashtags"


@click.command(
    name="suggest",
    short_help="Complete a hashtag prefix",
    epilog=format_examples("penstock suggest ra", "penstock suggest --port 8088"),
)
@click.argument("prefix", required=False)
@click.option(
    "--port",
    default=0,
    show_default="a free port",
    type=click.IntRange(0, 65535),
    help="Port of the web page, which is served on this machine only.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(prefix: str | None, port: int, as_json: bool) -> None:
    """Complete a hashtag prefix from the table of the stream `hashtags`; without a PREFIX, serve a web page.

    The page updates the suggestions every second. It also serves JSON at /suggest?prefix=ra. Stop it with Ctrl-C.
    """
    from penstock.platform.suggestions.page_server import serve_suggestions, to_json
    from penstock.platform.suggestions.suggestion_lookup import SuggestionLookup

    lookup = SuggestionLookup(current_settings().warehouse_path / "latest" / SUGGESTIONS_TABLE)
    if prefix is not None:
        if as_json:
            print_json(to_json(lookup, prefix))
        else:
            click.echo("\n".join(lookup.suggest(prefix).suggestions) or "no suggestions")
        return
    with stop_on_signal() as stop, serve_suggestions(lookup, port) as address:
        if as_json:
            print_json({"page": address})
        else:
            click.echo(f"serving {address}  (stop with Ctrl-C)")
        stop.wait()
