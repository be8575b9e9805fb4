"""A Spark session for one command: opened when it is wanted, gone when the command ends."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session(
    settings: Settings, name: str, tell: Callable[[str], None] = lambda _: None
) -> "Iterator[SparkSession]":
    """Open a session as the host has it, with a name of its own; jars that are missing are fetched first."""
    from penstock.infra.jars import ensure_jars
    from penstock.pipelines.spark.session import open_session
    from penstock.platform.host.compose import spark_config

    ensure_jars(
        settings.jars, settings.spark_jar_sets, lambda done, total, jar: tell(f"jar {done} of {total}: {jar}")
    )
    tell("Spark starts")
    session = open_session(replace(spark_config(settings), app_name=f"penstock-{name}", log_level="error"))
    try:
        yield session
    finally:
        session.stop()
