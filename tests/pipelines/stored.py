"""Records that a test holds in memory, as a topic has them."""

from penstock.engine.spark.bounded_sources.memory_source import (
    TOPIC_ROW_DDL,
    InMemorySource,
    create_memory_source,
)

__all__ = ["TOPIC_ROW_DDL", "InMemorySource", "create_memory_source"]
