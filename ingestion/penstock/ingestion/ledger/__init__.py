"""The delivery ledger: the records that a producer sent, which of them are acknowledged, and their offsets."""

from penstock.ingestion.ledger.addresses import DeliveryAddress, OffsetRunsByTarget, to_offset_runs
from penstock.ingestion.ledger.delivery_ledger import DeliveryLedger
from penstock.ingestion.ledger.entries import DeliveryIntent
from penstock.ingestion.ledger.reader import DeliveryLedgerState, read_addresses, read_ledger_state

__all__ = [
    "DeliveryAddress",
    "DeliveryIntent",
    "DeliveryLedger",
    "DeliveryLedgerState",
    "OffsetRunsByTarget",
    "read_addresses",
    "read_ledger_state",
    "to_offset_runs",
]
