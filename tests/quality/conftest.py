"""The Spark session, shared with tests/pipelines."""

from tests.pipelines.engine.spark.conftest import spark

__all__ = ["spark"]
