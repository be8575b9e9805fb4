"""A table takes over what another holds that was made beside it: in one commit, so readers see all of it or none.

The files are linked into the table's folder, or copied where they cannot be; what they replace stays there for
whoever reads an older version. The commit carries (application, batch id) like every other: it is made once.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from penstock.pipelines.store import Place
from penstock.pipelines.store.files import delta_table, new_table, same_file
from penstock.pipelines.tables.table import ATTEMPTS, EPOCH, stamp

Whose = Callable[[str], bool]
MICROSECOND = timedelta(microseconds=1)


def take_over(
    table: Place, beside: Place, application: str, batch_id: int, clock: int, whose: Whose | None = None
) -> bool:
    """Replace the files of `table` that are ours by those of the table beside; False where that was done before.

    `whose` tells by a file's name whether it is ours, for a table that several streams write. Without it all of
    them are, and the table gets the columns of the one beside, too.
    """
    made = delta_table(beside)
    live = _opened(table, made)
    for _ in range(ATTEMPTS):
        live.update_incremental()
        done = live.transaction_version(application)
        if done is not None and done >= batch_id:
            return False
        adds = list(_added(made, table, beside, f"{application}-{batch_id:012d}", clock))
        try:
            _commit(live, made, adds, Transaction(application, batch_id), clock, whose)
        except CommitFailedError:
            continue  # somebody else made a version meanwhile
        return True
    raise OSError(f"{table} is written by somebody else all the time: stop that, and try again")


def _commit(
    live: DeltaTable,
    made: DeltaTable,
    adds: list[AddAction],
    batch: Transaction,
    clock: int,
    whose: Whose | None,
) -> None:
    removes = [] if whose is None else [RemoveAction(p, True, clock) for p in _paths(live) if whose(p)]
    live.create_write_transaction(
        [*adds, *removes],
        mode="overwrite" if whose is None else "append",
        schema=made.schema() if whose is None else live.schema(),
        # No retries: what somebody does meanwhile, such as merging files, must be seen before this is decided.
        commit_properties=CommitProperties(max_commit_retries=0, app_transactions=[batch]),
        post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
    )


def _added(made: DeltaTable, table: Place, beside: Place, prefix: str, clock: int) -> Iterator[AddAction]:
    """The files of the table beside, under names of their own in the table's place."""
    for file in pa.table(made.get_add_actions(flatten=True)).to_pylist():
        name = f"{prefix}-{file['path']}"
        same_file(beside / file["path"], table / name)
        yield AddAction(name, file["size_bytes"], {}, clock, True, _statistics(file))


def _paths(live: DeltaTable) -> list[str]:
    return [str(path) for path in pa.table(live.get_add_actions()).column("path").to_pylist()]


def _opened(table: Place, made: DeltaTable) -> DeltaTable:
    try:
        return delta_table(table)
    except TableNotFoundError:
        return new_table(table, made.schema(), configuration=made.metadata().configuration)


def _statistics(file: Mapping[str, Any]) -> str:
    """What the table beside says of a file: its rows, nulls and bounds, by which it is found."""

    def of(end: str) -> dict[str, Any]:
        return {
            name.removeprefix(f"{end}."): _said(value)
            for name, value in file.items()
            if name.startswith(f"{end}.") and value is not None
        }

    told = {
        "numRecords": file["num_records"],
        "minValues": of("min"),
        "maxValues": of("max"),
        "nullCount": of("null_count"),
    }
    return json.dumps(told)


def _said(value: Any) -> Any:
    return stamp((value - EPOCH) // MICROSECOND) if hasattr(value, "timestamp") else value
