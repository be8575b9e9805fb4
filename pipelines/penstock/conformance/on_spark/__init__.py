"""Scripts run by the engine itself: Spark reads, the batch engine folds, Delta tables say what came of it."""

from penstock.conformance.on_spark.spark_engine import SparkEngine

__all__ = ["SparkEngine"]
