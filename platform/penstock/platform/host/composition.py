"""Builds and runs a stream host from settings."""

import threading
from pathlib import Path

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

from penstock.core.clock import now_ms
from penstock.core.secret import read_secret
from penstock.engine.host.host_process import HostConfig, run_host_process
from penstock.engine.host.pickle_by_value import pickle_modules_by_value
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.session import SparkSessionConfig
from penstock.engine.spark.stream_config import StreamConfig
from penstock.engine.storage.hadoop_settings import s3a_read_settings
from penstock.infra.jars import spark_jars
from penstock.infra.java import find_java
from penstock.infra.local.private_files import write_private_file
from penstock.infra.readiness import report_ready
from penstock.platform.control import open_control_store
from penstock.platform.host.consumer_groups import StreamConsumerGroups
from penstock.platform.host.host_metrics import HostMetrics
from penstock.platform.host.http_server import serve_http
from penstock.platform.host.lag_watch import watch_lag
from penstock.platform.host.observed_control import ObservedControl
from penstock.platform.host.quality_pages import quality_folder
from penstock.platform.services.alerts import AlertDispatcher
from penstock.platform.services.definition_files import definition_fingerprint
from penstock.platform.services.schema_registry import open_writer_schemas
from penstock.platform.services.stream_catalog import reload_plan
from penstock.platform.services.watermark_ahead import WatermarkObserver
from penstock.platform.settings import Settings
from penstock.quality.quarantine.replayed_records import ReplayedRecords

_LOAD_LOCK = threading.Lock()


def spark_config(settings: Settings) -> SparkSessionConfig:
    """Return the configuration of the host's Spark session; it leaves some cores of a cluster to commands."""
    return SparkSessionConfig(
        jars=spark_jars(settings.jars, *settings.spark_jar_sets),
        directory=settings.home / "spark",
        master=settings.spark.master,
        driver_host=settings.spark.driver_host,
        app_name="penstock-host",
        driver_memory=settings.spark.driver_memory,
        max_cores=settings.spark.host_cores,
        executor_memory=settings.spark.executor_memory,
        shuffle_partitions=settings.spark.shuffle_partitions,
        java_home=find_java().home,
        secret_settings_file=write_private_properties(settings),
        extra_settings=s3a_read_settings(settings.warehouse_path),
        log_format=settings.host.log_format,
    )


def write_private_properties(settings: Settings) -> Path | None:
    """Write the file with the secret of a secured Spark master, readable only by its owner; return its path.

    Without a secret, it removes the file and returns None.
    """
    path = settings.home / "spark" / "private.properties"
    if not settings.spark.secret:
        path.unlink(missing_ok=True)
        return None
    secret = read_secret(settings.spark.secret, "The secret of Spark's master")
    properties = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret.reveal(),
        "spark.network.crypto.enabled": "true",
    }
    write_private_file(path, "".join(f"{name} {value}\n" for name, value in properties.items()))
    return path


def host_config(settings: Settings, metrics_port: int) -> HostConfig:
    """Build the host's configuration; `metrics_port` is the port that serves its metrics."""
    stream_config = StreamConfig(
        settings.kafka.broker_access("host"),
        settings.warehouse_path,
        settings.host,
        find_resent=ReplayedRecords(settings.home / "quarantine"),
        schema_lookup=open_writer_schemas(settings).find_readable,
    )
    return HostConfig(
        spark_config(settings),
        settings.home / "streams",
        stream_config,
        address=f"{settings.host.reachable_metrics_address}:{metrics_port}",
    )


def _load_host_plan(name: str) -> Plan:
    """Load a pipeline from its current file, so that a restart of its stream is an upgrade.

    Streams start in parallel, and loading one pipeline reloads the modules of all.
    """
    with _LOAD_LOCK:
        plan = reload_plan(name)
        pickle_modules_by_value(name)
    return plan


def run_host(settings: Settings) -> None:
    """Run the streams that the control store assigns, until the process is asked to stop."""
    # Two failed attempts, the second on a new connection, must leave time for a heartbeat within the lease.
    store_timeout_s = max(settings.host.lease_timeout.seconds / 5, 1.0)
    store = open_control_store(settings.control_url, settings.control_secret, store_timeout_s)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    stream_groups = StreamConsumerGroups(
        settings.kafka.bootstrap_servers, settings.kafka.client_config("host")
    )
    alerts = AlertDispatcher(settings.alerts.webhook)
    watermarks = WatermarkObserver(settings.alerts)
    control = ObservedControl(
        store, HostMetrics(registry), stream_groups.report_batch, alerts, watermarks.observe_batch
    )
    try:
        pages = quality_folder(settings)
        broker, client = settings.kafka.bootstrap_servers, settings.kafka.client_config("host")
        with (
            serve_http(settings.host, registry, lambda: control.stream_health, pages) as port,
            watch_lag(
                broker,
                client,
                lambda: control.read_positions,
                lambda waits: control.show_lag(waits, now_ms()),
            ),
        ):
            config = host_config(settings, port)
            run_host_process(
                config,
                control,
                _load_host_plan,
                now_ms,
                on_ready=report_ready,
                read_definition_version=definition_fingerprint,
            )
    finally:
        stream_groups.close()
        alerts.close()
        store.close()
