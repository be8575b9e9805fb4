"""Kafka as Spark reads it: options, offsets, and where reading starts."""
