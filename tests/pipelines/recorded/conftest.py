"""The Spark session of the tests that need one."""

from tests.pipelines.spark.conftest import spark

__all__ = ["spark"]
