"""The delivery ledger: what was sent, what is acknowledged, and where it is."""

from penstock.ingestion.ledger.addresses import DeliveryAddress, OffsetRunsByTarget, to_offset_runs
from penstock.ingestion.ledger.delivery_ledger import Clock, DeliveryLedger
from penstock.ingestion.ledger.entries import DeliveryIntent
from penstock.ingestion.ledger.reader import DeliveryLedgerState, read_addresses, read_ledger_state

__all__ = [
    "Clock",
    "DeliveryAddress",
    "DeliveryIntent",
    "DeliveryLedger",
    "DeliveryLedgerState",
    "OffsetRunsByTarget",
    "read_addresses",
    "read_ledger_state",
    "to_offset_runs",
]
