"""A Spark session for the duration of one command."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.core.errors import WaitTimeoutError
from penstock.core.progress import ProgressReporter
from penstock.core.waiting import wait_until
from penstock.platform.errors import NoExecutorError
from penstock.platform.settings import Settings

EXECUTOR_TIMEOUT_S = 60.0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def open_command_spark(
    settings: Settings, name: str, report_progress: ProgressReporter = lambda _: None
) -> "Iterator[SparkSession]":
    """Open a session configured like the host's, after downloading missing jars.

    On a cluster, the session uses `spark.command_cores`, in addition to the hosts' cores. Raises NoExecutorError
    if the cluster provides no executor.
    """
    from penstock.engine.spark.session import open_spark_session
    from penstock.infra.jars import ensure_jars
    from penstock.platform.host.composition import spark_config

    ensure_jars(
        settings.jars,
        settings.spark_jar_sets,
        lambda done, total, jar: report_progress(f"jar {done} of {total}: {jar}"),
    )
    report_progress("starting Spark")
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
    """Raise NoExecutorError if no executor starts in time; Spark itself would wait forever."""
    # The executor memory status includes the driver.
    jvm_context = session.sparkContext._jsc.sc()  # noqa: SLF001  the Python API does not list executors
    try:
        wait_until(
            lambda: jvm_context.getExecutorMemoryStatus().size() > 1, EXECUTOR_TIMEOUT_S, "an executor"
        )
    except WaitTimeoutError:
        spark_settings = settings.spark
        raise NoExecutorError(
            f"{spark_settings.master} started no executor with {spark_settings.executor_memory} within "
            f"{EXECUTOR_TIMEOUT_S:g} s: its cores or memory are in use, or a worker is down. "
            f"Lower spark.host_cores ({spark_settings.host_cores}) or spark.executor_memory "
            "and restart the hosts, or add workers"
        ) from None
