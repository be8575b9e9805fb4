"""The one place that makes a Spark session, with `local[*]` and with `spark://…` alike."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.engine.spark.scratch_folder import claim_scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATEWAY_PORT_VARIABLE = "PYSPARK_GATEWAY_PORT"
"""The variable by which spark-submit says where its Java machine is."""

# A broken record may claim to hold text of two gigabytes: whoever believed it would run out of memory.
AVRO_LIMIT_JVM_OPTIONS = " ".join(
    f"-Dorg.apache.avro.limits.{of}.maxLength={most}"
    for of, most in (("string", 2**26), ("bytes", 2**26), ("collectionItems", 2**24))
)

LOG4J_CONFIG_PATH = Path(__file__).with_name("log4j2-spark.xml")


@dataclass(frozen=True)
class SparkSessionConfig:
    """What a session needs to know. `jars` are taken from the folder where they lie, never downloaded."""

    jars: Sequence[Path]
    directory: Path
    """Spark's own scratch space and warehouse; made where it is missing."""
    master: str = "local[*]"
    driver_host: str = "127.0.0.1"
    """Where executors find this process; nothing else is listened on."""
    app_name: str = "penstock"
    driver_memory: str = "2g"
    max_cores: int | None = None
    """The most that it takes of a cluster whose cores several sessions share; all there are without."""
    executor_memory: str | None = None
    """The heap of each executor on a cluster; what the cluster gives without."""
    shuffle_partitions: int = 2
    java_home: Path | None = None
    ui_enabled: bool = False
    log_level: Literal["warn", "error"] = "warn"
    """From what gravity on Spark's own words are written to stderr."""
    log_format: Literal["text", "json"] = "text"
    """As lines for a terminal, or each as an object for a collector."""
    extra_settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the user's own; they win over ours."""
    secret_settings_file: Path | None = None
    """A file of settings that hold a secret: all others stand on the Java machine's command line."""


def build_session_settings(config: SparkSessionConfig) -> dict[str, str]:
    """Every setting of a session, as Spark reads it. Each deviation from Spark's default has its reason."""
    jars = ":".join(str(jar) for jar in config.jars)
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
        # A log is no terminal: bars that redraw themselves only fill it.
        "spark.ui.showConsoleProgress": "false",
        # Event times are UTC everywhere; the machine's zone must not matter.
        "spark.sql.session.timeZone": "UTC",
        # One partition a core: Spark's 200 make a micro-batch cost seconds.
        "spark.sql.shuffle.partitions": str(config.shuffle_partitions),
        # A batch is one small job; replanning it in stages costs more than it can win.
        "spark.sql.adaptive.enabled": "false",
        # 4.2.0 hangs on Python functions over a vectorized Parquet scan (SPARK-58241).
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
        # Hadoop's own local file system starts a process for each change of permissions.
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # How often a silent topic is asked for news. Each question takes processor time, at rest the most of all
        # that a host takes; while records flow nobody waits for this, for the next batch is there already.
        "spark.sql.streaming.pollingDelay": "150ms",
        # The host keeps its own account of batches; Spark's progress reports of idle streams are noise.
        "spark.sql.streaming.noDataProgressEventInterval": "600000",
        # Which files a Delta table has is a small job, too: Delta takes 50 tasks for it, longer than for its rows.
        "spark.databricks.delta.snapshotPartitions": str(config.shuffle_partitions),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        **_cluster_limits(config),
        **config.extra_settings,
    }


def _cluster_limits(config: SparkSessionConfig) -> dict[str, str]:
    """What a session takes of a cluster: unbounded, the first would take every core and the next wait for ever."""
    limits = {"spark.cores.max": config.max_cores, "spark.executor.memory": config.executor_memory}
    return {name: str(value) for name, value in limits.items() if value is not None}


def open_spark_session(config: SparkSessionConfig) -> "SparkSession":
    """Start Spark, or return the session that this process has; the first call takes a few seconds.

    Under spark-submit the Java machine is there before this process, and was told the settings: those hold.
    """
    from pyspark.conf import SparkConf
    from pyspark.sql import SparkSession

    if GATEWAY_PORT_VARIABLE in os.environ:
        return SparkSession.builder.getOrCreate()
    scratch = claim_scratch_folder(config.directory / "scratch")
    if config.java_home is not None:
        os.environ["JAVA_HOME"] = str(config.java_home)
    # The Java machine is a child that reads its class path before any session exists.
    os.environ["SPARK_LOCAL_IP"] = config.driver_host
    # Functions of users run in Python processes of the executors, which need what this one has imported.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if config.secret_settings_file is not None:
        os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(
            ["--properties-file", str(config.secret_settings_file), "pyspark-shell"]
        )
    session_settings = build_session_settings(config) | {"spark.local.dir": str(scratch)}
    conf = SparkConf(loadDefaults=False).setAll(list(session_settings.items()))
    return SparkSession.builder.config(conf=conf).getOrCreate()


def is_session_alive(session: "SparkSession") -> bool:
    """Whether the Java machine answers and its Spark context was not stopped."""
    from py4j.protocol import Py4JError

    try:
        return session.sparkContext.defaultParallelism > 0
    except (Py4JError, OSError):
        return False
