"""`penstock state erase`: a key forgotten on request, with an account of it."""

from collections.abc import Sequence

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.output import StepPrinter, format_examples, print_json, print_table
from penstock.platform.cli.stream_arguments import stream_argument


def parse_key(pairs: Sequence[str]) -> dict[str, str]:
    """Read `--key FIELD=VALUE`, given several times."""
    for pair in pairs:
        if "=" not in pair:
            raise click.UsageError(f"--key {pair!r} is not FIELD=VALUE, as in --key device=device-0001")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


@click.command(
    epilog=format_examples(
        "penstock state erase sensor_minute --key device=device-0001",
        "penstock state erase card_alerts --key card=4711 --by dpo@example.org --yes --json",
    )
)
@stream_argument
@click.option(
    "--key",
    multiple=True,
    required=True,
    metavar="FIELD=VALUE",
    help="The key; once for each field. With some of its fields only, every key that has these values.",
)
@click.option("--by", "asked_by", default="", help="Who asks for it; without it the user of this machine.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
def erase(stream: str, key: Sequence[str], asked_by: str, yes: bool, as_json: bool) -> None:
    """Have a stream forget a key: its windows, what functions remember of it, and every older file that holds it.

    A stream that runs is drained for it and goes on afterwards. What it says of the key stays in topics and tables:
    erase it there as well, first in the topic and its archive. An account without the key goes to erasures/STREAM.
    """
    import getpass
    from dataclasses import asdict

    from penstock.platform.services.erasure import KeyErasureRequest, erase_key, preview_erasure

    settings = current_settings()
    request = KeyErasureRequest(stream, parse_key(key), asked_by or getpass.getuser())
    window_counts = preview_erasure(settings, request)
    if not as_json:
        print_table(
            ("stage", "windows"), [(name, _format_count(count)) for name, count in window_counts.items()]
        )
    if not yes:
        click.confirm("Erase them?", abort=True)
    with (
        use_control_store(settings) as store,
        StepPrinter().step(f"{stream} forgets a key") as report_progress,
    ):
        batch, account = erase_key(settings, store, request, report_progress)
    if as_json:
        print_json({"batch": batch, **asdict(account)})
    else:
        click.echo(
            f"batch {batch} erased {account.total_windows} windows; `penstock table show {stream} --kind erasures`"
        )


def _format_count(count: int | None) -> object:
    return "not by this key" if count is None else count
