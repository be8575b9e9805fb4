"""Where records come from; every source has the same shape. `opening` opens any of them by name."""

from penstock.ingestion.sources.generator_source import GeneratorSource
from penstock.ingestion.sources.source import EMPTY_BATCH, RecordSource, ReplayableSource

__all__ = ["EMPTY_BATCH", "GeneratorSource", "RecordSource", "ReplayableSource"]
