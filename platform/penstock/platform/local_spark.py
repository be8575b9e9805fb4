"""A Spark session for one command: opened when it is wanted, gone when the command ends."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.infra.errors import NotInTimeError
from penstock.infra.waiting import wait_until
from penstock.platform.errors import NoExecutorError
from penstock.platform.settings import Settings

EXECUTOR_SECONDS = 60.0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session(
    settings: Settings, name: str, tell: Callable[[str], None] = lambda _: None
) -> "Iterator[SparkSession]":
    """Open a session as the host has it, with a name of its own; jars that are missing are fetched first.

    On a cluster it takes `spark.command_cores` beside the hosts; NoExecutorError where there are none to be had.
    """
    from penstock.infra.jars import ensure_jars
    from penstock.pipelines.spark.session import open_session
    from penstock.platform.host.compose import spark_config

    ensure_jars(
        settings.jars, settings.spark_jar_sets, lambda done, total, jar: tell(f"jar {done} of {total}: {jar}")
    )
    tell("Spark starts")
    shared = replace(spark_config(settings), cores=settings.spark.command_cores)
    own = replace(shared, app_name=f"penstock-{name}", log_level="error", log_form="text")
    session = open_session(own)
    try:
        if settings.spark.master.startswith("spark://"):
            _await_executor(session, settings)
        yield session
    finally:
        session.stop()


def _await_executor(session: "SparkSession", settings: Settings) -> None:
    """Spark itself would wait for ever, and say so in its log alone."""
    # The driver is among those whose memory is known.
    known = session.sparkContext._jsc.sc()  # noqa: SLF001  Python is told of no executor
    try:
        wait_until(lambda: known.getExecutorMemoryStatus().size() > 1, EXECUTOR_SECONDS, "an executor")
    except NotInTimeError:
        spark = settings.spark
        raise NoExecutorError(
            f"{spark.master} gave no executor of {spark.executor_memory} within {EXECUTOR_SECONDS:g} s: its cores "
            f"or its memory are taken, or a worker is gone. Lower spark.host_cores ({spark.host_cores}) or "
            f"spark.executor_memory and restart the hosts, or add workers"
        ) from None
