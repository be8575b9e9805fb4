"""Records that a stream has read, and that a replay cannot read any more, because their contract changed."""

from dataclasses import dataclass
from typing import get_args

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.history.ledger_sums import sum_ledger
from penstock.engine.plan.stages import Plan
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.tables.table_paths import list_quarantine_paths
from penstock.ingestion.contracts.invalid_reasons import ReasonCode

ADDRESS = ("topic", "partition", "offset")


@dataclass(frozen=True)
class UnreadableRecords:
    """How many records a replay cannot read, and the first of them with its reason."""

    count: int
    first: str
    reason: str


def find_unreadable_records(
    plan: Plan, warehouse: StoragePath, replay_warehouse: StoragePath
) -> UnreadableRecords | None:
    """Return the records that the replay quarantined for their form, and the stream did not.

    Records that the stream has not read yet do not count. Neither do those that a check or a clock quarantines:
    their rules belong to the pipeline. Rows that were removed from the quarantine table are known by their number.
    """
    accounts = sum_ledger(warehouse / "ledger" / plan.name)
    unreadable: list[pa.Table] = []
    for path in list_quarantine_paths(plan):
        replayed = _read_addresses(replay_warehouse / path, plan.name)
        before = _read_addresses(warehouse / path, plan.name)
        for account in accounts:
            read_before = (
                (pc.field("topic") == account.topic)
                & (pc.field("partition") == account.partition)
                & (pc.field("offset") >= account.start)
                & (pc.field("offset") < account.end)
            )
            rows = replayed.filter(read_before)
            if rows.num_rows > account.quarantined:
                rows = rows.join(before.select(ADDRESS), list(ADDRESS), join_type="left anti")
                unreadable.append(rows.filter(pc.is_in(rows["code"], pa.array(get_args(ReasonCode)))))
    found = pa.concat_tables(unreadable) if unreadable else None
    if found is None or not found.num_rows:
        return None
    (first,) = found.sort_by([(name, "ascending") for name in ADDRESS]).slice(0, 1).to_pylist()
    address = f"{first['topic']}/{first['partition']} offset {first['offset']}"
    return UnreadableRecords(found.num_rows, address, first["reason"])


def _read_addresses(table: StoragePath, stream: str) -> pa.Table:
    """Return address, reason and its code of the records that a stream quarantined."""
    names = [*ADDRESS, "reason"]
    if not is_delta_table(table):
        schema = pa.schema(
            [
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("reason", pa.string()),
            ]
        )
        rows = schema.empty_table()
    else:
        rows = open_delta_table(table).to_pyarrow_table(columns=[*names, "stream"])
        rows = rows.filter(pc.field("stream") == stream).select(names)
    codes = pc.list_element(pc.split_pattern(rows["reason"], ":", max_splits=1), 0)
    return rows.append_column("code", codes)
