"""The Spark session of the tests that need one."""

from tests.pipelines.engine.spark.conftest import spark

__all__ = ["spark"]
