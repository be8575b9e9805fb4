"""Where records come from; every source has the same shape."""

from penstock.ingestion.sources.generated import Generated
from penstock.ingestion.sources.opening import SourceOptions, open_source, source_kinds
from penstock.ingestion.sources.source import NOTHING, Source

__all__ = ["NOTHING", "Generated", "Source", "SourceOptions", "open_source", "source_kinds"]
