"""Repairs a stream that stopped because its files do not fit together."""

from typing import TYPE_CHECKING

from penstock.core.clock import now_ms
from penstock.engine.stream_folders import refuse_unfinished_switch, resolve_stream_folder
from penstock.platform.errors import StreamRepairError, UnknownStreamError
from penstock.platform.services.stream_hold import acquire_fence
from penstock.platform.services.table_claims import load_last_plan
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.engine.batch.outcome import BatchOutcome
    from penstock.engine.repair.repair_plan import RepairPlan, RepairTarget
    from penstock.platform.control import ControlStore


def plan_stream_repair(settings: Settings, stream: str) -> "RepairPlan":
    """Return what is wrong with a stream, and what a repair would do. The stream must not run."""
    from penstock.engine.repair.repair_plan import plan_repair

    return plan_repair(_open_target(settings, stream))


def repair_stream(settings: Settings, store: "ControlStore", stream: str) -> "BatchOutcome":
    """Repair a stream with its lease held, and return the batch that did it.

    Raises StreamRepairError if something prevents it now.
    """
    from penstock.engine.host.control_reporter import to_batch_record
    from penstock.engine.repair.repair_plan import plan_repair
    from penstock.engine.repair.repair_run import carry_out_repair

    streams = settings.home / "streams"
    with acquire_fence(store, streams, stream, "a repair") as fence:
        refuse_unfinished_switch(streams, stream)
        target = _open_target(settings, stream)
        repair = plan_repair(target)
        refuse_blocked_repair(stream, repair)
        outcome = carry_out_repair(target, repair, fence, now_ms)
        store.record_batch(to_batch_record(stream, outcome))
    return outcome


def refuse_blocked_repair(stream: str, repair: "RepairPlan") -> None:
    """Raise StreamRepairError if a repair cannot undo something."""
    if repair.blockers:
        raise StreamRepairError(
            f"stream {stream} cannot be repaired: {'; '.join(repair.blockers)}. Restore the home from a backup, or "
            f"compute the results again: `penstock stream replay {stream}`"
        )


def _open_target(settings: Settings, stream: str) -> "RepairTarget":
    from penstock.engine.repair.repair_plan import RepairTarget

    streams = settings.home / "streams"
    plan = load_last_plan(streams, stream)
    if plan is None or not (streams / stream).is_dir():
        raise UnknownStreamError(
            f"there is no stream {stream!r} with state. `penstock status` lists the streams"
        )
    broker = settings.kafka.broker_access("host")
    return RepairTarget(
        plan, resolve_stream_folder(streams, stream), settings.warehouse_path, dict(broker.client_config)
    )
