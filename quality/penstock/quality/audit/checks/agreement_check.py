"""Checks that the stream ledger, the control store and the journal agree."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain as one_after_another
from itertools import pairwise

import pyarrow as pa

from penstock.engine.batch.accounts import RECORD_FATES, PartitionAccount
from penstock.engine.host.control import BatchRecord
from penstock.engine.host.control_reporter import to_batch_record
from penstock.quality.audit.audit_check import stream_check
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences

AccountCounts = Mapping[str, int]
AccountsByPartition = Mapping[tuple[int, str, int], AccountCounts]
"""The accounts of each batch and partition."""

BATCH_FIELDS = {"clock_ms": "time is", "watermark_ms": "watermark is", "panes": "panes are"}
"""The compared fields of a batch."""

ACCOUNT_FIELDS = ("start", "end", "read", *RECORD_FATES)


@stream_check("agreement", order=40)
def check_agreement(scope: AuditScope) -> CheckOutcome:
    """The stream ledger, the control store and the journal agree on every batch."""
    ledger_accounts = accounts_from_ledger(scope.ledger)
    control_store_accounts = accounts_from_batches(
        (batch.batch_id, batch.accounts) for batch in scope.batches
    )
    outcomes = list(scope.outcomes())
    journal_accounts = [(outcome.batch_id, outcome.accounts) for outcome in outcomes]
    differences = one_after_another(
        check_batch_sequence(scope.batches),
        compare_batch_fields(
            scope.batches, (to_batch_record(scope.plan.name, outcome) for outcome in outcomes)
        ),
        compare_accounts(ledger_accounts, control_store_accounts, "control store"),
        compare_accounts(ledger_accounts, accounts_from_batches(journal_accounts), "journal"),
    )
    success_text = (
        f"ledger and control store agree on {len(scope.batches)} batches, "
        f"ledger and journal on {len(journal_accounts)}"
    )
    return judge_differences(differences, success_text)


def accounts_from_batches(batches: Iterable[tuple[int, Sequence[PartitionAccount]]]) -> AccountsByPartition:
    """Return the accounts of batches by partition."""
    return {
        (batch_id, account.topic, account.partition): {
            name: getattr(account, name) for name in ACCOUNT_FIELDS
        }
        for batch_id, accounts in batches
        for account in accounts
    }


def accounts_from_ledger(ledger: pa.Table) -> AccountsByPartition:
    """Return the accounts of a stream ledger; the last row wins if there are several."""
    names = ("batch_id", "topic", "partition")
    return {
        tuple(row[name] for name in names): {name: row[name] for name in ACCOUNT_FIELDS}
        for row in ledger.select([*names, *ACCOUNT_FIELDS]).to_pylist()
    }


def compare_accounts(
    ledger: AccountsByPartition, other_accounts: AccountsByPartition, source_name: str
) -> Iterator[AuditDifference]:
    """Yield differences between the ledger and another source, whose records may start later."""
    if not other_accounts:
        return
    first_batch = min(batch for batch, _, _ in other_accounts)
    for account_key in sorted(
        {*other_accounts, *(ledger_key for ledger_key in ledger if ledger_key[0] >= first_batch)}
    ):
        batch, topic, partition = account_key
        location = f"{topic}/{partition}, batch {batch}"
        ledger_account, other_account = ledger.get(account_key), other_accounts.get(account_key)
        if ledger_account is None:
            yield AuditDifference(location, f"the {source_name} has it, but the ledger does not")
        elif other_account is None:
            yield AuditDifference(location, f"the ledger has it, but the {source_name} does not")
        elif ledger_account != other_account:
            name = next(name for name in ACCOUNT_FIELDS if ledger_account[name] != other_account[name])
            yield AuditDifference(
                location,
                f"{name} is {ledger_account[name]} in the ledger, but {other_account[name]} in the {source_name}",
            )


def check_batch_sequence(batches: Sequence[BatchRecord]) -> Iterator[AuditDifference]:
    """Yield batches of the control store whose numbers have gaps or whose times go back."""
    for previous, current in pairwise(batches):
        location = f"batch {current.batch_id}"
        if current.batch_id != previous.batch_id + 1:
            yield AuditDifference(location, f"follows batch {previous.batch_id} in the control store")
        if current.clock_ms < previous.clock_ms:
            yield AuditDifference(
                location,
                f"its time is {previous.clock_ms - current.clock_ms} ms before that of batch {previous.batch_id}",
            )
        if previous.watermark_ms is None:
            continue
        if current.watermark_ms is None:
            yield AuditDifference(location, f"has no watermark, but batch {previous.batch_id} has one")
        elif current.watermark_ms < previous.watermark_ms:
            yield AuditDifference(location, f"its watermark is before that of batch {previous.batch_id}")


def compare_batch_fields(
    batches: Sequence[BatchRecord], journal_batches: Iterable[BatchRecord]
) -> Iterator[AuditDifference]:
    """Yield batches whose time, watermark or panes differ between the control store and the journal."""
    batches_by_id = {batch.batch_id: batch for batch in batches}
    for journaled in journal_batches:
        batch = batches_by_id.get(journaled.batch_id)
        for name, phrase in BATCH_FIELDS.items() if batch is not None else ():
            stored_value, journal_value = getattr(batch, name), getattr(journaled, name)
            if stored_value != journal_value:
                yield AuditDifference(
                    f"batch {journaled.batch_id}",
                    f"its {phrase} {stored_value} in the control store, but {journal_value} in the journal",
                )
