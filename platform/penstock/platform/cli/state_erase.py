"""`penstock state erase`: erase a key from a stream's state and record the erasure."""

from collections.abc import Sequence

import click

from penstock.platform.cli.command_context import current_settings, use_control_store
from penstock.platform.cli.confirmation import confirm
from penstock.platform.cli.options import json_option, stream_argument, yes_option
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.steps import StepPrinter


def parse_key(pairs: Sequence[str]) -> dict[str, str]:
    """Parse the values of the repeatable option `--key FIELD=VALUE`."""
    for pair in pairs:
        if "=" not in pair:
            raise click.UsageError(
                f"--key {pair!r} is not of the form FIELD=VALUE, for example --key device=device-0001"
            )
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


@click.command(
    short_help="Erase a key from a stream's state",
    epilog=format_examples(
        "penstock state erase sensor_minute --key device=device-0001",
        "penstock state erase card_alerts --key card=4711 --by dpo@example.org --yes --json",
    ),
)
@stream_argument
@click.option(
    "--key",
    multiple=True,
    required=True,
    metavar="FIELD=VALUE",
    help="Key to erase; repeat the option for each field. A part of the fields selects every matching key.",
)
@click.option("--by", "asked_by", default="", help="Who requests the erasure. Default: your user name.")
@yes_option
@json_option
def erase(stream: str, key: Sequence[str], asked_by: str, yes: bool, as_json: bool) -> None:
    """Erase a key from a stream's state: its windows, its function state, and every older file that contains it.

    A running stream is drained for the erasure and resumes afterwards. The command does not erase the key from
    topics and tables: erase it there too, first in the topic and its archive. A record of the erasure, without
    the key, goes to the table erasures/STREAM.
    """
    import getpass
    from dataclasses import asdict

    from penstock.platform.services.erasure import KeyErasureRequest, erase_key, preview_erasure
    from penstock.platform.services.operator_actions import record_action

    settings = current_settings()
    request = KeyErasureRequest(stream, parse_key(key), asked_by or getpass.getuser())
    window_counts = preview_erasure(settings, request)
    if not as_json:
        print_table(
            ("stage", "windows"), [(name, _format_count(count)) for name, count in window_counts.items()]
        )
    if not yes:
        confirm("Erase these windows?")
    with (
        use_control_store(settings) as store,
        StepPrinter().step(f"erase a key of {stream}") as report_progress,
    ):
        record_action(settings.home, "state erase", stream, {"fields": sorted(request.key)})
        batch, account = erase_key(settings, store, request, report_progress)
    if as_json:
        print_json({"batch": batch, **asdict(account)})
    else:
        click.echo(
            f"batch {batch} erased {account.total_windows} windows; `penstock table show {stream} --kind erasures`"
        )


def _format_count(count: int | None) -> object:
    return "not keyed by these fields" if count is None else count
