"""Where records come from; every source has the same shape. `opening` opens any of them by name."""

from penstock.ingestion.sources.generated import Generated
from penstock.ingestion.sources.source import NOTHING, Repeatable, Source

__all__ = ["NOTHING", "Generated", "Repeatable", "Source"]
