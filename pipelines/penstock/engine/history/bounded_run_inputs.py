"""The input of a bounded run, which is stored before its first batch: a resumed run reads the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from penstock.core.clock import Clock
from penstock.core.files import write_atomically
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.lookup_versions import read_pinned_lookups, split_by_versions
from penstock.engine.errors import DefinitionError
from penstock.engine.history.batch_history import HistoryBatch
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.engine.spark.bounded_sources.range_slicing import slice_ranges
from penstock.engine.storage import StoragePath
from penstock.engine.tables.lookup_tables import LookupTables


@dataclass(frozen=True)
class BoundedRunInputs:
    """The input of a run and its start time, stored before the first batch; a resumed run uses the same input."""

    clock: int
    plan_fingerprint: str
    batches: list[list[OffsetRange]]
    table_versions: list[dict[str, int]] = field(default_factory=list)
    """The versions of lookup tables that each batch reads; empty without lookups."""
    clocks: list[int] = field(default_factory=list)
    """The clock of each batch if they repeat the batches of a stream; else empty."""

    def table_versions_of(self, number: int) -> dict[str, int]:
        """Return the versions of lookup tables that a batch reads."""
        return self.table_versions[number] if self.table_versions else {}

    def clock_of_batch(self, number: int) -> int:
        """Return the clock of a batch."""
        return self.clocks[number] if self.clocks else self.clock


def split_by_table_versions(
    plan: Plan, ranges: Sequence[OffsetRange], warehouse: StoragePath
) -> list[tuple[Sequence[OffsetRange], Mapping[str, int]]]:
    """Split ranges where the live stream read another version of a lookup table; return each with its versions.

    Offsets that the live stream has not read get the newest versions.
    """
    lookup_steps = plan.lookups
    if not lookup_steps:
        return [(ranges, {})]
    newest = LookupTables(lookup_steps, warehouse).read_versions()
    parts = split_by_versions(ranges, read_pinned_lookups(warehouse, plan.name))
    return [(part.ranges, {**newest, **(part.versions or {})}) for part in parts]


def create_empty_batch(ranges: Sequence[OffsetRange], clock: int) -> HistoryBatch:
    """Return a batch of empty ranges at the start of these ranges."""
    return HistoryBatch(clock, [replace(span, end=span.start) for span in ranges])


def load_or_create_inputs(
    plan: Plan,
    source: BoundedSource,
    config: BoundedRunConfig,
    clock: Clock,
    load_history: Callable[[Sequence[OffsetRange]], Sequence[HistoryBatch]] | None = None,
) -> BoundedRunInputs:
    """Return the stored input of a run; on the first call, list the source's ranges and store them.

    `load_history` returns the batches in which a stream read these ranges; the run then repeats them.
    """
    path = config.directory / "inputs.json"
    if not path.exists():
        ranges, now_ms = source.list_ranges(), clock()
        history = (
            [HistoryBatch(now_ms, list(ranges))]
            if load_history is None
            else load_history(ranges) or [create_empty_batch(ranges, now_ms)]
        )
        max_records = config.max_records_per_batch if load_history is None else None
        slices = [
            (batch.clock, range_slice, table_versions)
            for batch in history
            for part, table_versions in split_by_table_versions(plan, batch.ranges, config.lookup_warehouse)
            for range_slice in slice_ranges(part, max_records)
        ]
        created = BoundedRunInputs(
            now_ms,
            fingerprint(plan),
            [list(range_slice) for _, range_slice, _ in slices],
            [dict(table_versions) for _, _, table_versions in slices],
            [] if load_history is None else [clock_ms for clock_ms, _, _ in slices],
        )
        config.directory.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode(created))
    inputs = msgspec.json.decode(path.read_bytes(), type=BoundedRunInputs)
    if inputs.plan_fingerprint != fingerprint(plan):
        raise DefinitionError(
            "run", f"{config.directory} holds a run of another definition", "Use another name for this run"
        )
    return inputs
