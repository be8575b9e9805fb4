"""Runs scripts on the real engine: Spark reads, the batch engine aggregates, and Delta tables have the output."""

from penstock.conformance.on_spark.spark_engine import SparkEngine

__all__ = ["SparkEngine"]
