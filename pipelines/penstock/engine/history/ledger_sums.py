"""The ledger of a stream, summed by partition over all batches."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.batch.record_schemas import LEDGER_SCHEMA
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table


def read_first_offsets(warehouse: StoragePath, stream: str) -> Mapping[str, int]:
    """Return the first offset of each partition in a stream's ledger."""
    accounts = sum_ledger(warehouse / "ledger" / stream)
    return {f"{account.topic}/{account.partition}": account.start for account in accounts}


def sum_ledger(ledger: StoragePath) -> tuple[PartitionAccount, ...]:
    """Return the accounts of each partition, summed over all batches of a ledger."""
    if not is_delta_table(ledger):
        return ()
    count_columns = [
        name for name in LEDGER_SCHEMA.names if name not in ("topic", "partition", "start", "end")
    ]
    rows = open_delta_table(ledger).to_pyarrow_table(columns=LEDGER_SCHEMA.names)
    aggregations: Sequence[tuple[str, str]] = [
        ("start", "min"),
        ("end", "max"),
        *((n, "sum") for n in count_columns),
    ]
    sums: pa.Table = rows.group_by(["topic", "partition"]).aggregate(list(aggregations))
    return tuple(
        PartitionAccount(
            row["topic"],
            row["partition"],
            row["start_min"],
            row["end_max"],
            **{name: row[f"{name}_sum"] for name in count_columns},
        )
        for row in sorted(sums.to_pylist(), key=lambda row: (row["topic"], row["partition"]))
    )
