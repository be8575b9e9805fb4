"""Records that a test holds in memory, as a topic has them."""

from penstock.pipelines.spark.stored.held import SCHEMA, Held, held_records

__all__ = ["SCHEMA", "Held", "held_records"]
