"""`penstock producer`: inspect the delivery ledgers of producers."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.core.names import explain_unknown_name
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import complete_names, json_option
from penstock.platform.cli.output import format_examples, print_json, print_table

if TYPE_CHECKING:
    from penstock.ingestion.ledger import DeliveryLedgerState

SECTION: Section = "Topics"


@click.group(
    name="producer",
    short_help="Inspect the delivery ledgers of producers",
    epilog=format_examples("penstock producer list", "penstock producer where sensors-1 41"),
)
def command() -> None:
    """Inspect the delivery ledgers of producers. Each `penstock ingest` has a name and a ledger of that name."""


def _list_producers() -> Iterable[str]:
    return [path.name for path in _list_ledgers()]


@command.command(
    name="list",
    short_help="List the producers and their progress",
    epilog=format_examples("penstock producer list"),
)
@json_option
def list_(as_json: bool) -> None:
    """List the producers of this home folder with their acknowledged and unresolved records."""
    from penstock.ingestion.ledger import read_ledger_state

    states = {path.name: read_ledger_state(path) for path in _list_ledgers()}
    rows = [(name, *_state_fields(state).values()) for name, state in states.items()]
    if as_json:
        print_json([{"producer": name, **_state_fields(state)} for name, state in states.items()])
    else:
        columns = ("producer", "topic", "source", "acknowledged", "unresolved")
        print_table(
            columns, rows, empty="no producers yet; start one with `penstock ingest sensors --count 10`"
        )


@command.command(
    short_help="Print the topic, partition and offset of records",
    epilog=format_examples(
        "penstock producer where sensors-1 41", "penstock producer where sensors-1 0 --count 100 --json"
    ),
)
@click.argument("name", shell_complete=complete_names(_list_producers))
@click.argument("sequence", type=click.IntRange(min=0))
@click.option("--count", default=1, show_default=True, type=click.IntRange(min=1), help="Number of records.")
@json_option
def where(name: str, sequence: int, count: int, as_json: bool) -> int:
    """Print the topic, partition and offset of records, by their sequence number in the producer (from 0).

    The exit code is 1 if a record has no address; the output gives the reason.
    """
    from penstock.ingestion.ledger import read_addresses

    ledger = _find_ledger(name)
    addresses = list(read_addresses(ledger, sequence, count))
    if as_json:
        print_json([address._asdict() for address in addresses])
    else:
        print_table(
            ("sequence", "topic", "partition", "offset"),
            addresses,
            empty="none of these records has an address",
        )
    missing_sequences = sorted(
        {*range(sequence, sequence + count)} - {address.sequence for address in addresses}
    )
    if missing_sequences:
        click.echo(
            f"{len(missing_sequences):,} records without an address, the first is {missing_sequences[0]}: "
            f"{_explain_missing(ledger, missing_sequences[0])}",
            err=True,
        )
    return 1 if missing_sequences else 0


def _state_fields(state: "DeliveryLedgerState") -> dict[str, str | int]:
    topic = state.targets[0][0] if state.targets else ""
    unresolved = sum(intent.record_count for intent in state.pending_intents)
    return {
        "topic": topic,
        "source": state.source,
        "acknowledged_until": state.acknowledged_until,
        "unresolved": unresolved,
    }


def _explain_missing(ledger: Path, sequence: int) -> str:
    from penstock.ingestion.ledger import read_ledger_state

    state = read_ledger_state(ledger)
    if sequence < state.acknowledged_until:
        return "abandoned by a source that cannot replay, or older than the topic's retention"
    if any(
        intent.first_sequence <= sequence < intent.first_sequence + intent.record_count
        for intent in state.pending_intents
    ):
        return "sent but not acknowledged; the next run of this producer resolves it"
    return f"not sent yet: the producer has reached {state.acknowledged_until}"


def _list_ledgers() -> list[Path]:
    folder = current_settings().home / "producers"
    return sorted({path.parent for path in folder.glob("*/*.ledger")})


def _find_ledger(name: str) -> Path:
    ledgers_by_name = {path.name: path for path in _list_ledgers()}
    if name not in ledgers_by_name:
        raise click.BadParameter(
            explain_unknown_name("producer", name, ledgers_by_name, "penstock producer list")
        )
    return ledgers_by_name[name]
