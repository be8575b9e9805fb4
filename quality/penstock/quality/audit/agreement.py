"""Whether all who keep accounts of a stream say the same: its ledger, the control store, and its journal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import pyarrow as pa

from penstock.pipelines.host.control import BatchRecord, PartitionAccount
from penstock.quality.audit.chain import FATES
from penstock.quality.audit.verdict import Difference

Account = Mapping[str, int]
Accounts = Mapping[tuple[int, str, int], Account]
"""The accounts of each batch and partition."""

MOMENT = {"clock_ms": "clock is", "watermark_ms": "watermark is", "panes": "panes are"}
"""What is said of a batch as a whole."""

NUMBERS = ("start", "end", "read", *FATES)


def accounts_of(batches: Iterable[tuple[int, Sequence[PartitionAccount]]]) -> Accounts:
    """Return what batches say of their partitions."""
    return {
        (number, one.topic, one.partition): {name: getattr(one, name) for name in NUMBERS}
        for number, accounts in batches
        for one in accounts
    }


def accounts_in(ledger: pa.Table) -> Accounts:
    """Return what a ledger says; of rows that are there twice the last."""
    names = ("batch_id", "topic", "partition")
    return {
        tuple(row[name] for name in names): {name: row[name] for name in NUMBERS}
        for row in ledger.select([*names, *NUMBERS]).to_pylist()
    }


def agreement(ledger: Accounts, others: Accounts, who: str) -> Iterator[Difference]:
    """Yield where the ledger says another thing than somebody whose memory may begin later."""
    if not others:
        return
    begins = min(batch for batch, _, _ in others)
    for place in sorted({*others, *(one for one in ledger if one[0] >= begins)}):
        batch, topic, partition = place
        where = f"{topic}/{partition}, batch {batch}"
        ours, theirs = ledger.get(place), others.get(place)
        if ours is None:
            yield Difference(where, f"the {who} knows it, and the ledger does not")
        elif theirs is None:
            yield Difference(where, f"the ledger knows it, and the {who} does not")
        elif ours != theirs:
            name = next(name for name in NUMBERS if ours[name] != theirs[name])
            yield Difference(where, f"{name} is {ours[name]} in the ledger, and {theirs[name]} in the {who}")


def numbering(batches: Sequence[BatchRecord]) -> Iterator[Difference]:
    """Yield where batches that the control store knows do not follow one another, in number and in time."""
    for before, after in pairwise(batches):
        where = f"batch {after.batch_id}"
        if after.batch_id != before.batch_id + 1:
            yield Difference(where, f"follows batch {before.batch_id} in the control store")
        if after.clock_ms < before.clock_ms:
            yield Difference(
                where, f"its clock is {before.clock_ms - after.clock_ms} ms before that of {before.batch_id}"
            )
        if before.watermark_ms is None:
            continue
        if after.watermark_ms is None:
            yield Difference(where, f"it has no watermark, and batch {before.batch_id} has one")
        elif after.watermark_ms < before.watermark_ms:
            yield Difference(where, f"its watermark is before that of batch {before.batch_id}")


def moments(batches: Sequence[BatchRecord], decided: Iterable[BatchRecord]) -> Iterator[Difference]:
    """Yield where the control store has another moment of a batch, or other panes, than its journal."""
    known = {batch.batch_id: batch for batch in batches}
    for told in decided:
        batch = known.get(told.batch_id)
        for name, words in MOMENT.items() if batch is not None else ():
            ours, theirs = getattr(batch, name), getattr(told, name)
            if ours != theirs:
                yield Difference(
                    f"batch {told.batch_id}",
                    f"its {words} {ours} in the control store, and {theirs} in the journal",
                )
