"""Drops a table that no stream owns any more, and hands a table over to a stream."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.progress import ProgressReporter
from penstock.engine.batch.stream_claim import make_stream_claim
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.table_owner import TableOwner, find_table_owner, record_table_owner
from penstock.engine.tables.table_writers import list_table_writers
from penstock.pipelines.table_claims import list_pipeline_outputs
from penstock.platform.errors import RemovalError
from penstock.platform.services.dependents import list_all_plans, list_dependents
from penstock.platform.services.removal import RemovalPlan, describe_table, remove_table
from penstock.platform.services.stream_catalog import list_stream_names
from penstock.platform.services.stream_hold import acquire_fence
from penstock.platform.services.stream_lifecycle import check_stream_exists, has_live_lease
from penstock.platform.services.warehouse_tables import WarehouseTable, find_table
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.platform.control import ControlStore

SHARED_KINDS = ("quarantine", "raw")


@dataclass(frozen=True)
class TableHandover:
    """A planned hand-over: the table, its owner now, and its owner afterwards."""

    table: WarehouseTable
    from_owner: str
    to_owner: TableOwner


def plan_table_drop(settings: Settings, name: str, kind: str | None) -> RemovalPlan:
    """Return what dropping a table would remove, and what prevents it. Raises TableNotFoundError."""
    table = find_table(settings.warehouse_path, name, kind)
    path = f"{table.kind}/{table.name}"
    blockers = [
        f"stream {plan.name} writes it. Drop the stream: `penstock stream drop {plan.name}`"
        for plan in list_all_plans(settings)
        if path in {output.path for output in list_pipeline_outputs(plan)}
    ]
    if table.kind in SHARED_KINDS:
        blockers.append(f"it belongs to topic {table.name}; other streams use it")
    owner = find_table_owner(table.path)
    if owner is not None and not blockers and owner.stream in list_stream_names():
        blockers.append(f"it belongs to {owner}. Hand it over first: `penstock table claim`")
    blockers += list_dependents(settings, [path], [])
    return RemovalPlan(f"table {path}", [describe_table(table.path, path)], blockers)


def drop_table(settings: Settings, name: str, kind: str | None, report_progress: ProgressReporter) -> None:
    """Remove a table as planned. Raises RemovalError if something prevents it now."""
    plan = plan_table_drop(settings, name, kind)
    plan.refuse_if_blocked()
    for item in plan.items:
        report_progress(item.name)
        remove_table(settings.warehouse_path / item.name)


def plan_handover(
    settings: Settings, store: "ControlStore", name: str, kind: str | None, stream: str
) -> TableHandover:
    """Return the hand-over of a table to a stream of this installation.

    Raises RemovalError if a stream writes it now, or if the table has newer batches than the stream's journal: the
    stream's next batches would be taken for batches that are in the table already.
    """
    check_stream_exists(stream, list_stream_names())
    table = find_table(settings.warehouse_path, name, kind)
    path, owner = f"{table.kind}/{table.name}", find_table_owner(table.path)
    if table.kind == "quarantine":
        raise RemovalError(f"{path} has no single owner: every stream that reads the topic writes it")
    for writer in {stream} | ({owner.stream} if owner is not None else set()):
        if has_live_lease(store, writer):
            raise RemovalError(f"stream {writer} runs. Stop it first: `penstock stream drain {writer}`")
    claim = make_stream_claim(settings.home / "streams", stream)
    last_batch = open_delta_table(table.path).transaction_version(stream)
    if last_batch is not None and last_batch > claim.last_batch:
        raise RemovalError(
            f"{path} has batch {last_batch} of a stream {stream}, but the journal of this one ends at batch "
            f"{claim.last_batch}. Restore its newer state, or drop the table: `penstock table drop {path}`"
        )
    former_owner = str(owner) if owner is not None else _describe_writers(table)
    return TableHandover(table, former_owner, claim.owner)


def hand_over(settings: Settings, store: "ControlStore", handover: TableHandover) -> None:
    """Record the new owner of a table, while its stream cannot start."""
    with acquire_fence(store, settings.home / "streams", handover.to_owner.stream, "a hand-over"):
        record_table_owner(open_delta_table(handover.table.path), handover.to_owner)


def _describe_writers(table: WarehouseTable) -> str:
    names = sorted(list_table_writers(table.path))
    return f"no stream; written by stream {', '.join(names)}" if names else "no stream"
