"""What a stream may have beyond what every stream needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.placement import DRIVER_ONLY, Placement
from penstock.engine.batch.poison_isolation import ResentFinder, find_no_resent
from penstock.engine.dedup.id_store import RecordIdStore

VersionsReader = Callable[[], Mapping[str, int]]
"""Tells the newest version of each table that steps look into."""


def report_no_backlog(_ranges: Sequence[OffsetRange]) -> int:
    """Say of no record that it waits."""
    return 0


@dataclass(frozen=True)
class EngineOptions:
    """How the batches of one stream are run. As it stands: all is folded here, and nothing is looked into."""

    count_backlog: Callable[[Sequence[OffsetRange]], int] = report_no_backlog
    """How many records wait after these ranges."""
    plan_fingerprint: str = ""
    """Of the plan: which definition made a state."""
    dedup_memory: RecordIdStore | None = None
    """The ids of records, where repeats are set aside."""
    placement: Placement = DRIVER_ONLY
    poison_limit: int = 0
    """How many records that break one's own code may be set aside; 0 for none."""
    read_lookup_versions: VersionsReader = dict
    find_resent: ResentFinder = find_no_resent


DEFAULT_OPTIONS = EngineOptions()
