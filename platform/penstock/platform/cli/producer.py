"""`penstock producer`: the ledgers of producers, and where in Kafka each of their records is."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example, print_json, print_table

if TYPE_CHECKING:
    from penstock.ingestion.ledger import LedgerState


@click.group(name="producer")
def command() -> None:
    """Look at what producers delivered: each `penstock ingest` has a name, and a ledger under it."""


_json = click.option("--json", "as_json", is_flag=True, help="Print for programs.")


def _complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    return [path.name for path in _ledgers() if path.name.startswith(typed)]


@command.command(name="list", epilog=example("penstock producer list"))
@_json
def list_(as_json: bool) -> None:
    """List the producers of this home: how far each is, and what of its last run is in doubt."""
    from penstock.ingestion.ledger import read_state

    found = {path.name: read_state(path) for path in _ledgers()}
    rows = [(name, *_told(state).values()) for name, state in found.items()]
    if as_json:
        print_json([{"producer": name, **_told(state)} for name, state in found.items()])
    else:
        columns = ("producer", "topic", "source", "settled", "in doubt")
        print_table(columns, rows, empty="no producer yet: `penstock ingest sensors --count 10` is one")


@command.command(
    epilog=example(
        "penstock producer where sensors-1 41", "penstock producer where sensors-1 0 --count 100 --json"
    )
)
@click.argument("name", shell_complete=_complete)
@click.argument("sequence", type=click.IntRange(min=0))
@click.option("--count", default=1, show_default=True, type=click.IntRange(min=1), help="So many from there.")
@_json
def where(name: str, sequence: int, count: int, as_json: bool) -> int:
    """Say where records are: topic, partition and offset, by their number in the producer, from 0.

    Ends with 1 when any of them has no address, and says why.
    """
    from penstock.ingestion.ledger import read_addresses

    ledger = _ledger(name)
    found = list(read_addresses(ledger, sequence, count))
    if as_json:
        print_json([address._asdict() for address in found])
    else:
        print_table(("sequence", "topic", "partition", "offset"), found, empty="none of them has an address")
    missing = sorted({*range(sequence, sequence + count)} - {address.sequence for address in found})
    if missing:
        click.echo(
            f"{len(missing):,} without an address, from {missing[0]} on: {_why(ledger, missing[0])}", err=True
        )
    return 1 if missing else 0


def _told(state: "LedgerState") -> dict[str, str | int]:
    topic = state.targets[0][0] if state.targets else ""
    doubted = sum(intent.count for intent in state.intents)
    return {"topic": topic, "source": state.source, "settled": state.reached, "in_doubt": doubted}


def _why(ledger: Path, sequence: int) -> str:
    from penstock.ingestion.ledger import read_state

    state = read_state(ledger)
    if sequence < state.reached:
        return "abandoned by a source that cannot repeat itself, or older than the topic keeps records"
    if any(intent.first <= sequence < intent.first + intent.count for intent in state.intents):
        return "sent, and not acknowledged so far; the next run of this producer settles it"
    return f"not sent: the producer is at {state.reached}"


def _ledgers() -> list[Path]:
    folder = current_settings().home / "producers"
    return sorted({path.parent for path in folder.glob("*/*.ledger")})


def _ledger(name: str) -> Path:
    known = {path.name: path for path in _ledgers()}
    if name not in known:
        raise click.BadParameter(f"{name!r} is no producer here; there are {', '.join(known) or 'none'}")
    return known[name]
