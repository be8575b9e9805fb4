"""`penstock producer`: the ledgers of producers, and where in Kafka each of their records is."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.output import format_examples, print_json, print_table

if TYPE_CHECKING:
    from penstock.ingestion.ledger import DeliveryLedgerState


@click.group(name="producer")
def command() -> None:
    """Look at what producers delivered: each `penstock ingest` has a name, and a ledger under it."""


_json = click.option("--json", "as_json", is_flag=True, help="Print for programs.")


def _complete_producers(_context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    return [path.name for path in _list_ledgers() if path.name.startswith(prefix)]


@command.command(name="list", epilog=format_examples("penstock producer list"))
@_json
def list_(as_json: bool) -> None:
    """List the producers of this home: how far each is, and what of its last run is in doubt."""
    from penstock.ingestion.ledger import read_ledger_state

    states = {path.name: read_ledger_state(path) for path in _list_ledgers()}
    rows = [(name, *_state_fields(state).values()) for name, state in states.items()]
    if as_json:
        print_json([{"producer": name, **_state_fields(state)} for name, state in states.items()])
    else:
        columns = ("producer", "topic", "source", "settled", "in doubt")
        print_table(columns, rows, empty="no producer yet: `penstock ingest sensors --count 10` is one")


@command.command(
    epilog=format_examples(
        "penstock producer where sensors-1 41", "penstock producer where sensors-1 0 --count 100 --json"
    )
)
@click.argument("name", shell_complete=_complete_producers)
@click.argument("sequence", type=click.IntRange(min=0))
@click.option("--count", default=1, show_default=True, type=click.IntRange(min=1), help="So many from there.")
@_json
def where(name: str, sequence: int, count: int, as_json: bool) -> int:
    """Say where records are: topic, partition and offset, by their number in the producer, from 0.

    Ends with 1 when any of them has no address, and says why.
    """
    from penstock.ingestion.ledger import read_addresses

    ledger = _find_ledger(name)
    addresses = list(read_addresses(ledger, sequence, count))
    if as_json:
        print_json([address._asdict() for address in addresses])
    else:
        print_table(
            ("sequence", "topic", "partition", "offset"), addresses, empty="none of them has an address"
        )
    missing_sequences = sorted(
        {*range(sequence, sequence + count)} - {address.sequence for address in addresses}
    )
    if missing_sequences:
        click.echo(
            f"{len(missing_sequences):,} without an address, from {missing_sequences[0]} on: "
            f"{_explain_missing(ledger, missing_sequences[0])}",
            err=True,
        )
    return 1 if missing_sequences else 0


def _state_fields(state: "DeliveryLedgerState") -> dict[str, str | int]:
    topic = state.targets[0][0] if state.targets else ""
    in_doubt = sum(intent.record_count for intent in state.pending_intents)
    return {"topic": topic, "source": state.source, "settled": state.acknowledged_until, "in_doubt": in_doubt}


def _explain_missing(ledger: Path, sequence: int) -> str:
    from penstock.ingestion.ledger import read_ledger_state

    state = read_ledger_state(ledger)
    if sequence < state.acknowledged_until:
        return "abandoned by a source that cannot repeat itself, or older than the topic keeps records"
    if any(
        intent.first_sequence <= sequence < intent.first_sequence + intent.record_count
        for intent in state.pending_intents
    ):
        return "sent, and not acknowledged so far; the next run of this producer settles it"
    return f"not sent: the producer is at {state.acknowledged_until}"


def _list_ledgers() -> list[Path]:
    folder = current_settings().home / "producers"
    return sorted({path.parent for path in folder.glob("*/*.ledger")})


def _find_ledger(name: str) -> Path:
    ledgers_by_name = {path.name: path for path in _list_ledgers()}
    if name not in ledgers_by_name:
        raise click.BadParameter(
            f"{name!r} is no producer here; there are {', '.join(ledgers_by_name) or 'none'}"
        )
    return ledgers_by_name[name]
