"""A Spark session for one command: opened when it is wanted, gone when the command ends."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.core.errors import WaitTimeoutError
from penstock.core.waiting import wait_until
from penstock.platform.errors import NoExecutorError
from penstock.platform.settings import Settings

EXECUTOR_TIMEOUT_S = 60.0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def open_command_spark(
    settings: Settings, name: str, report_progress: Callable[[str], None] = lambda _: None
) -> "Iterator[SparkSession]":
    """Open a session as the host has it, with a name of its own; jars that are missing are fetched first.

    On a cluster it takes `spark.command_cores` beside the hosts; NoExecutorError where there are none to be had.
    """
    from penstock.engine.spark.session import open_spark_session
    from penstock.infra.jars import ensure_jars
    from penstock.platform.host.composition import spark_config

    ensure_jars(
        settings.jars,
        settings.spark_jar_sets,
        lambda done, total, jar: report_progress(f"jar {done} of {total}: {jar}"),
    )
    report_progress("Spark starts")
    base_config = replace(spark_config(settings), max_cores=settings.spark.command_cores)
    session_config = replace(base_config, app_name=f"penstock-{name}", log_level="error", log_format="text")
    session = open_spark_session(session_config)
    try:
        if settings.spark.master.startswith("spark://"):
            _wait_for_executor(session, settings)
        yield session
    finally:
        session.stop()


def _wait_for_executor(session: "SparkSession", settings: Settings) -> None:
    """Spark itself would wait for ever, and say so in its log alone."""
    # The driver is among those whose memory is known.
    jvm_context = session.sparkContext._jsc.sc()  # noqa: SLF001  Python is told of no executor
    try:
        wait_until(
            lambda: jvm_context.getExecutorMemoryStatus().size() > 1, EXECUTOR_TIMEOUT_S, "an executor"
        )
    except WaitTimeoutError:
        spark_settings = settings.spark
        raise NoExecutorError(
            f"{spark_settings.master} gave no executor of {spark_settings.executor_memory} within "
            f"{EXECUTOR_TIMEOUT_S:g} s: its cores or its memory are taken, or a worker is gone. "
            f"Lower spark.host_cores ({spark_settings.host_cores}) or spark.executor_memory "
            "and restart the hosts, or add workers"
        ) from None
