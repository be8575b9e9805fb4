"""Reading topics without Spark: group offsets for others to see, a plain consumer, and none between."""

from penstock.ingestion.consumers.direct import consume_directly
from penstock.ingestion.consumers.groups import GroupOffsets, Offsets
from penstock.ingestion.consumers.plain import Assignment, PlainConsumer, Received

__all__ = ["Assignment", "GroupOffsets", "Offsets", "PlainConsumer", "Received", "consume_directly"]
