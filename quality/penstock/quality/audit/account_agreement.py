"""Whether all who keep accounts of a stream say the same: its ledger, the control store, and its journal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import pyarrow as pa

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord
from penstock.quality.audit.ledger_continuity import FATES
from penstock.quality.audit.verdict import AuditDifference

AccountCounts = Mapping[str, int]
AccountsByPartition = Mapping[tuple[int, str, int], AccountCounts]
"""The accounts of each batch and partition."""

BATCH_FIELDS = {"clock_ms": "clock is", "watermark_ms": "watermark is", "panes": "panes are"}
"""What is said of a batch as a whole."""

ACCOUNT_FIELDS = ("start", "end", "read", *FATES)


def accounts_from_batches(batches: Iterable[tuple[int, Sequence[PartitionAccount]]]) -> AccountsByPartition:
    """Return what batches say of their partitions."""
    return {
        (batch_id, account.topic, account.partition): {
            name: getattr(account, name) for name in ACCOUNT_FIELDS
        }
        for batch_id, accounts in batches
        for account in accounts
    }


def accounts_from_ledger(ledger: pa.Table) -> AccountsByPartition:
    """Return what a ledger says; of rows that are there twice the last."""
    names = ("batch_id", "topic", "partition")
    return {
        tuple(row[name] for name in names): {name: row[name] for name in ACCOUNT_FIELDS}
        for row in ledger.select([*names, *ACCOUNT_FIELDS]).to_pylist()
    }


def compare_accounts(
    ledger: AccountsByPartition, others: AccountsByPartition, witness: str
) -> Iterator[AuditDifference]:
    """Yield where the ledger says another thing than somebody whose memory may begin later."""
    if not others:
        return
    first_batch = min(batch for batch, _, _ in others)
    for account_key in sorted(
        {*others, *(ledger_key for ledger_key in ledger if ledger_key[0] >= first_batch)}
    ):
        batch, topic, partition = account_key
        location = f"{topic}/{partition}, batch {batch}"
        ledger_account, other_account = ledger.get(account_key), others.get(account_key)
        if ledger_account is None:
            yield AuditDifference(location, f"the {witness} knows it, and the ledger does not")
        elif other_account is None:
            yield AuditDifference(location, f"the ledger knows it, and the {witness} does not")
        elif ledger_account != other_account:
            name = next(name for name in ACCOUNT_FIELDS if ledger_account[name] != other_account[name])
            yield AuditDifference(
                location,
                f"{name} is {ledger_account[name]} in the ledger, and {other_account[name]} in the {witness}",
            )


def check_batch_sequence(batches: Sequence[BatchRecord]) -> Iterator[AuditDifference]:
    """Yield where batches that the control store knows do not follow one another, in number and in time."""
    for previous, current in pairwise(batches):
        location = f"batch {current.batch_id}"
        if current.batch_id != previous.batch_id + 1:
            yield AuditDifference(location, f"follows batch {previous.batch_id} in the control store")
        if current.clock_ms < previous.clock_ms:
            yield AuditDifference(
                location,
                f"its clock is {previous.clock_ms - current.clock_ms} ms before that of {previous.batch_id}",
            )
        if previous.watermark_ms is None:
            continue
        if current.watermark_ms is None:
            yield AuditDifference(location, f"it has no watermark, and batch {previous.batch_id} has one")
        elif current.watermark_ms < previous.watermark_ms:
            yield AuditDifference(location, f"its watermark is before that of batch {previous.batch_id}")


def compare_batch_fields(
    batches: Sequence[BatchRecord], journal_batches: Iterable[BatchRecord]
) -> Iterator[AuditDifference]:
    """Yield where the control store has another moment of a batch, or other panes, than its journal."""
    batches_by_id = {batch.batch_id: batch for batch in batches}
    for journaled in journal_batches:
        batch = batches_by_id.get(journaled.batch_id)
        for name, phrase in BATCH_FIELDS.items() if batch is not None else ():
            stored_value, journal_value = getattr(batch, name), getattr(journaled, name)
            if stored_value != journal_value:
                yield AuditDifference(
                    f"batch {journaled.batch_id}",
                    f"its {phrase} {stored_value} in the control store, and {journal_value} in the journal",
                )
