"""A key erased from what a stream keeps, whether it runs or not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipelines.catalog import names
from penstock.pipelines.host.folders import check_whole, folder_of_stream
from penstock.platform.clock import now_ms
from penstock.platform.errors import UnknownStreamError
from penstock.platform.settings import Settings
from penstock.platform.standstill import standing_still
from penstock.platform.streams import plan_of

if TYPE_CHECKING:
    from penstock.pipelines.erasure.account import Erased
    from penstock.pipelines.plan.stage import Plan
    from penstock.platform.control import ControlStore


@dataclass(frozen=True)
class EraseOrder:
    """Whose state is to go, of which stream, and who asks for it."""

    stream: str
    key: Mapping[str, str]
    asked_by: str


def would_erase(settings: Settings, order: EraseOrder) -> Mapping[str, int | None]:
    """How many windows each stage has of a key; None for one that does not go by its fields. Changes nothing."""
    from penstock.pipelines.batch.inspecting import of_key, state_at
    from penstock.pipelines.erasure.erase import stages_of_key

    folder = _folder(settings, order.stream)
    knows = stages_of_key(_plan(folder, order.stream), order.key)
    kept = state_at(folder)
    return {
        stage: of_key(kept[stage], order.key).num_rows if known else None for stage, known in knows.items()
    }


def erase_key(
    settings: Settings, store: "ControlStore", order: EraseOrder, tell: Callable[[str], None]
) -> tuple[int, "Erased"]:
    """Erase it. Returns the batch that did, and its account; a stream that is to run goes on afterwards."""
    from penstock.pipelines.erasure.erase import Place, Request, erase
    from penstock.pipelines.host.telling import batch_record

    streams = settings.home / "streams"
    with standing_still(store, streams, order.stream, "an erasure", tell) as right:
        check_whole(streams, order.stream)
        folder = _folder(settings, order.stream)
        clients = {
            "bootstrap.servers": settings.kafka.servers,
            "log_level": "2",
            **settings.kafka.client("host"),
        }
        place = Place(order.stream, folder, settings.tables, clients)
        before = place.journal.last_outcome()
        if before is not None:
            store.record_batch(batch_record(order.stream, before))
        tell("rewriting the state")
        request = Request(order.key, order.asked_by, now_ms())
        outcome, erased = erase(place, _plan(folder, order.stream), request, right.epoch)
        store.record_batch(batch_record(order.stream, outcome))
    return outcome.batch_id, erased


def _folder(settings: Settings, stream: str) -> Path:
    if stream not in names():
        raise UnknownStreamError(f"there is no pipeline {stream!r}; there are: {', '.join(names())}")
    return folder_of_stream(settings.home / "streams", stream)


def _plan(folder: Path, stream: str) -> "Plan":
    """The definition that the state was made by."""
    from penstock.pipelines.upgrade.stored import stored_plan

    return stored_plan(folder) or plan_of(stream)
