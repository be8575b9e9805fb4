"""The options of a stream's batch engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.clock import Clock, now_ms
from penstock.engine.batch.batch_sync import InputFileLister
from penstock.engine.batch.excluded_records import ResentFinder, find_no_resent
from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.batch.placement import DRIVER_ONLY, Placement
from penstock.engine.dedup.id_store import RecordIdStore
from penstock.engine.host_settings import STANDALONE_SETTINGS, HostSettings

VersionsReader = Callable[[], Mapping[str, int]]
"""Returns the newest version of each table that lookups read."""


def report_no_backlog(_ranges: Sequence[OffsetRange]) -> int:
    """Return no backlog."""
    return 0


def find_no_input_files(_intent: BatchIntent) -> Sequence[Path]:
    """Return no files: the caller gives the input again."""
    return ()


@dataclass(frozen=True)
class EngineOptions:
    """How to run the batches of one stream. By default everything is processed here, and nothing is looked up."""

    count_backlog: Callable[[Sequence[OffsetRange]], int] = report_no_backlog
    """Returns how many records wait beyond these ranges."""
    plan_fingerprint: str = ""
    """The fingerprint of the plan that writes the state."""
    dedup_memory: RecordIdStore | None = None
    """The ids of seen records, if the stream deduplicates."""
    placement: Placement = DRIVER_ONLY
    settings: HostSettings = STANDALONE_SETTINGS
    read_lookup_versions: VersionsReader = dict
    find_resent: ResentFinder = find_no_resent
    wall_clock: Clock = now_ms
    """Tells when a batch is committed. Results depend on the time of its intent only."""
    list_input_files: InputFileLister = find_no_input_files
    """Lists the files without which the input of a batch cannot be continued."""


DEFAULT_OPTIONS = EngineOptions()
