"""One Spark session for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.engine.spark.session import SparkSessionConfig, open_spark_session
from penstock.infra.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_jar_paths: list[Path]) -> "Iterator[SparkSession]":
    config = SparkSessionConfig(
        jars=spark_jar_paths,
        directory=tmp_path_factory.mktemp("spark"),
        driver_memory="2g",  # with 1g, garbage collection between tests takes a tenth of the time
        java_home=find_java().home,
    )
    session = open_spark_session(config)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
