"""The configuration of a bounded run."""

from dataclasses import dataclass, field
from pathlib import Path

from penstock.engine.batch.excluded_records import ResentFinder, find_no_resent
from penstock.engine.host_settings import STANDALONE_SETTINGS, HostSettings
from penstock.engine.spark.parse.writer_schemas import SchemaLookup, refuse_without_registry
from penstock.engine.storage import StoragePath


@dataclass(frozen=True)
class BoundedRunConfig:
    """Where a run stores its state and tables. It must not share them with a live stream."""

    directory: Path
    warehouse: StoragePath
    max_records_per_batch: int | None = None
    settings: HostSettings = STANDALONE_SETTINGS
    find_resent: ResentFinder = find_no_resent
    schema_lookup: SchemaLookup = field(default=refuse_without_registry, repr=False)
    live_warehouse: StoragePath | None = None
    """The warehouse of the live stream if it differs: lookups read its tables, at the versions the stream read."""

    @property
    def lookup_warehouse(self) -> StoragePath:
        """The warehouse of the lookup tables, and of the lookup versions of live batches."""
        return self.warehouse if self.live_warehouse is None else self.live_warehouse
