"""Fixtures for tests of pipelines.

Load them in `conftest.py`: `pytest_plugins = ["penstock.platform.pytest_plugin"]`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def penstock_spark() -> "Iterator[Callable[[], SparkSession]]":
    """Opens the Spark session of the tests, for `PipelineDriver(..., spark=penstock_spark)`.

    Spark starts when a pipeline first needs it, with the settings of this checkout, and stops after the last test.
    """
    sessions: list[SparkSession] = []
    with ExitStack() as stack:

        def open_session() -> "SparkSession":
            if not sessions:
                from penstock.platform.services.command_spark import open_command_spark
                from penstock.platform.settings import load_settings

                settings = load_settings().settings
                sessions.append(stack.enter_context(open_command_spark(settings, "tests")))
            return sessions[0]

        yield open_session
