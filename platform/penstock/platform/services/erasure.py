"""Erasure of a key from a stream's state, whether the stream runs or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.clock import now_ms
from penstock.core.progress import ProgressReporter
from penstock.engine.stream_folders import refuse_unfinished_switch, resolve_stream_folder
from penstock.platform.services.stream_catalog import check_pipeline_exists, load_plan
from penstock.platform.services.stream_hold import hold_stream
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.engine.batch.erasure_account import ErasureAccount
    from penstock.engine.plan.stages import Plan
    from penstock.platform.control import ControlStore


@dataclass(frozen=True)
class KeyErasureRequest:
    """The stream, the key to erase, and who requests it."""

    stream: str
    key: Mapping[str, str]
    requested_by: str


def preview_erasure(settings: Settings, request: KeyErasureRequest) -> Mapping[str, int | None]:
    """Count the windows of a key by stage; None for a stage that is not keyed by these fields. Changes nothing."""
    from penstock.engine.batch.state_inspection import read_state_at, select_key_rows
    from penstock.engine.erasure.key_erasure import find_stages_with_key

    folder = _resolve_folder(settings, request.stream)
    key_by_stage = find_stages_with_key(_load_state_plan(folder, request.stream), request.key)
    snapshots = read_state_at(folder)
    return {
        stage: select_key_rows(snapshots[stage], request.key).num_rows if has_key else None
        for stage, has_key in key_by_stage.items()
    }


def erase_key(
    settings: Settings,
    store: "ControlStore",
    request: KeyErasureRequest,
    report_progress: ProgressReporter,
) -> tuple[int, "ErasureAccount"]:
    """Erase a key. Returns the batch that erased it and its account; a running stream resumes afterwards."""
    from penstock.engine.batch.stream_claim import make_stream_claim
    from penstock.engine.erasure.key_erasure import ErasureRequest, ErasureTarget, erase_key_state
    from penstock.engine.host.control_reporter import to_batch_record

    streams = settings.home / "streams"
    with hold_stream(store, streams, request.stream, "an erasure", report_progress) as fence:
        refuse_unfinished_switch(streams, request.stream)
        folder = _resolve_folder(settings, request.stream)
        broker = settings.kafka.broker_access("host")
        claim = make_stream_claim(streams, request.stream)
        target = ErasureTarget(request.stream, folder, settings.warehouse_path, broker.client_config, claim)
        last_outcome = target.journal.read_last_outcome()
        if last_outcome is not None:
            store.record_batch(to_batch_record(request.stream, last_outcome))
        report_progress("rewriting the state")
        erasure_request = ErasureRequest(request.key, request.requested_by, now_ms())
        outcome, account = erase_key_state(
            target, _load_state_plan(folder, request.stream), erasure_request, fence.epoch
        )
        store.record_batch(to_batch_record(request.stream, outcome))
    return outcome.batch_id, account


def _resolve_folder(settings: Settings, stream: str) -> Path:
    check_pipeline_exists(stream)
    return resolve_stream_folder(settings.home / "streams", stream)


def _load_state_plan(folder: Path, stream: str) -> "Plan":
    """Return the plan that the state was written with."""
    from penstock.engine.upgrade.stored_plan import read_stored_plan

    return read_stored_plan(folder) or load_plan(stream)
