"""Prints the reasons of refused records, and how to go on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.output import print_table

if TYPE_CHECKING:
    from penstock.ingestion.refused_records import RefusedReason

ALLOW_INVALID = "--allow-invalid"

allow_invalid_option = click.option(
    ALLOW_INVALID, is_flag=True, help="Accept that records are refused: the exit code is 0 all the same."
)


def print_refused(refused: "Sequence[RefusedReason]", where: str) -> None:
    """Print each reason with the number of its records and an example, then where the records are."""
    columns = ("refused", "reason", "example", "position", "record")
    rows = [(f"{each.records:,}", each.reason, each.detail, each.position, each.value) for each in refused]
    shown = [number for number in range(len(columns)) if number < 2 or any(row[number] for row in rows)]
    print_table([columns[number] for number in shown], [[row[number] for number in shown] for row in rows])
    click.echo(where)
    click.echo(f"Fix the records or the contract. To accept refused records, add {ALLOW_INVALID}.")
