"""What the live streams of a host share: their broker, their tables and the host's settings."""

from dataclasses import dataclass, field

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.excluded_records import ResentFinder, find_no_resent
from penstock.engine.host_settings import STANDALONE_SETTINGS, HostSettings
from penstock.engine.spark.parse.writer_schemas import SchemaLookup, refuse_without_registry
from penstock.engine.storage import StoragePath


@dataclass(frozen=True)
class StreamConfig:
    """Where streams read and write. Each stream keeps its checkpoint, journal and state in its own folder."""

    broker: BrokerAccess
    warehouse: StoragePath
    settings: HostSettings = STANDALONE_SETTINGS
    max_records_per_batch: int = 500_000
    find_resent: ResentFinder = field(default=find_no_resent, repr=False)
    """Finds records that were replayed from the quarantine; a stream skips the originals."""
    schema_lookup: SchemaLookup = field(default=refuse_without_registry, repr=False)
    """Finds the writer schemas of records in Avro."""
