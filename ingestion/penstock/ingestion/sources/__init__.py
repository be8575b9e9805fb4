"""Where records come from; every source has the same shape."""

from penstock.ingestion.sources.generated import Generated
from penstock.ingestion.sources.source import NOTHING, Source

__all__ = ["NOTHING", "Generated", "Source"]
