"""Starts Spark sessions, for `local[*]` and for `spark://…`. No other module does."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.core.file_access import read_umask
from penstock.engine.spark.jvm.classes import SPARK_CLASSES_JAR, share_classes
from penstock.engine.spark.scratch_folder import claim_scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATEWAY_PORT_VARIABLE = "PYSPARK_GATEWAY_PORT"
"""The environment variable in which spark-submit passes the port of its JVM."""

# A malformed record may claim to hold two gigabytes of text; without limits the reader runs out of memory.
AVRO_LIMIT_JVM_OPTIONS = " ".join(
    f"-Dorg.apache.avro.limits.{kind}.maxLength={limit}"
    for kind, limit in (("string", 2**26), ("bytes", 2**26), ("collectionItems", 2**24))
)

LOG4J_CONFIG_PATH = Path(__file__).with_name("log4j2-spark.xml")


@dataclass(frozen=True)
class SparkSessionConfig:
    """The configuration of a session. `jars` are local files; nothing is downloaded."""

    jars: Sequence[Path]
    directory: Path
    """The folder of Spark's scratch space and warehouse; created when it is missing."""
    master: str = "local[*]"
    driver_host: str = "127.0.0.1"
    """The address on which executors reach this process; Spark listens on no other."""
    app_name: str = "penstock"
    driver_memory: str = "2g"
    max_cores: int | None = None
    """The most cores to take of a cluster that several sessions share; None takes all."""
    executor_memory: str | None = None
    """The heap of each executor on a cluster; None uses the cluster's default."""
    shuffle_partitions: int = 2
    java_home: Path | None = None
    ui_enabled: bool = False
    log_level: Literal["warn", "error"] = "warn"
    """The lowest level of Spark's log messages that are written to stderr."""
    log_format: Literal["text", "json"] = "text"
    """Plain lines for a terminal, or JSON objects for a log collector."""
    extra_settings: Mapping[str, str] = field(default_factory=dict)
    """The user's settings; they override all others."""
    secret_settings_file: Path | None = None
    """A file of settings that hold secrets: all other settings are visible on the JVM's command line."""


def build_session_settings(config: SparkSessionConfig) -> dict[str, str]:
    """Return every setting of a session under Spark's name; a comment gives the reason of each deviation."""
    jars = ":".join(str(jar) for jar in (*config.jars, SPARK_CLASSES_JAR))
    return {
        "spark.master": config.master,
        "spark.app.name": config.app_name,
        "spark.driver.memory": config.driver_memory,
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.driver.extraJavaOptions": (
            f"-XX:+UseParallelGC -Duser.timezone=UTC -Djava.net.preferIPv4Stack=true {AVRO_LIMIT_JVM_OPTIONS} "
            f"-Dlog4j2.configurationFile={LOG4J_CONFIG_PATH.as_uri()} -Dpenstock.log={config.log_level} "
            f"-Dpenstock.log.form={config.log_format}"
        ),
        "spark.executor.extraJavaOptions": AVRO_LIMIT_JVM_OPTIONS,
        "spark.driver.bindAddress": config.driver_host,
        "spark.driver.host": config.driver_host,
        "spark.local.dir": str(config.directory / "scratch"),
        "spark.sql.warehouse.dir": (config.directory / "warehouse").as_uri(),
        "spark.ui.enabled": str(config.ui_enabled).lower(),
        # Progress bars redraw themselves, which only fills a log file.
        "spark.ui.showConsoleProgress": "false",
        # Event times are in UTC everywhere, whatever the time zone of the machine.
        "spark.sql.session.timeZone": "UTC",
        # One partition for each core: with Spark's 200 a micro-batch takes seconds.
        "spark.sql.shuffle.partitions": str(config.shuffle_partitions),
        # A batch is one small job; replanning it stage by stage costs more than it saves.
        "spark.sql.adaptive.enabled": "false",
        # Spark keeps 100 generated classes, fewer than a few streams need, and compiles a dropped one again.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Spark 4.2.0 hangs on Python functions over a vectorized Parquet scan (SPARK-58241).
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
        # Hadoop sets the permissions of files itself, by its own umask.
        "spark.hadoop.fs.permissions.umask-mode": f"{read_umask():03o}",
        # The short form of a traceback leaves out the cause of an error, which has the frames of user code.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        # Hadoop's own local file system starts a process for each change of permissions.
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # How often Spark polls an idle topic. Polling takes most of the CPU time of an idle host. While records
        # arrive this delay does not matter, as the next batch is already available.
        "spark.sql.streaming.pollingDelay": "150ms",
        # The host reports batches itself; Spark's progress reports of idle streams are noise.
        "spark.sql.streaming.noDataProgressEventInterval": "600000",
        # By default Delta lists the files of a table with 50 tasks, which takes longer than reading the rows.
        "spark.databricks.delta.snapshotPartitions": str(config.shuffle_partitions),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        **_cluster_limits(config),
        **config.extra_settings,
    }


def _cluster_limits(config: SparkSessionConfig) -> dict[str, str]:
    """Return the limits on a cluster: an unlimited session takes every core, and the next one waits forever."""
    limits = {"spark.cores.max": config.max_cores, "spark.executor.memory": config.executor_memory}
    return {name: str(value) for name, value in limits.items() if value is not None}


def open_spark_session(config: SparkSessionConfig) -> "SparkSession":
    """Start Spark, or return the session of this process; the first call takes a few seconds.

    Under spark-submit the JVM has started before this process with its own settings, which remain in force.
    """
    from pyspark.conf import SparkConf
    from pyspark.sql import SparkSession

    if GATEWAY_PORT_VARIABLE in os.environ:
        session = SparkSession.builder.getOrCreate()
        share_classes(session)
        return session
    scratch = claim_scratch_folder(config.directory / "scratch")
    if config.java_home is not None:
        os.environ["JAVA_HOME"] = str(config.java_home)
    # The JVM is a child process that reads its environment before any session exists.
    os.environ["SPARK_LOCAL_IP"] = config.driver_host
    # UDFs run in Python processes of the executors, which need the modules of this interpreter.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if config.secret_settings_file is not None:
        os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(
            ["--properties-file", str(config.secret_settings_file), "pyspark-shell"]
        )
    session_settings = build_session_settings(config) | {"spark.local.dir": str(scratch)}
    conf = SparkConf(loadDefaults=False).setAll(list(session_settings.items()))
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    share_classes(session)
    return session


def is_session_alive(session: "SparkSession") -> bool:
    """Whether the JVM answers and its Spark context is not stopped."""
    from py4j.protocol import Py4JError

    try:
        return session.sparkContext.defaultParallelism > 0
    except (Py4JError, OSError):
        return False
