"""The delivery ledger: what was sent, what is acknowledged, and where it is."""

from penstock.ingestion.ledger.addresses import Address, Runs, runs_of
from penstock.ingestion.ledger.entries import Intent
from penstock.ingestion.ledger.ledger import Clock, Ledger
from penstock.ingestion.ledger.reading import LedgerState, read_addresses, read_state

__all__ = [
    "Address",
    "Clock",
    "Intent",
    "Ledger",
    "LedgerState",
    "Runs",
    "read_addresses",
    "read_state",
    "runs_of",
]
