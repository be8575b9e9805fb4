"""The Spark session of the tests in this folder."""

from tests.pipelines.engine.spark.conftest import spark

__all__ = ["spark"]
