"""Spark's Kafka source: consumer options, offsets of batches, and initial offsets."""
