"""From settings to a running host."""

from pathlib import Path

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

from penstock.infra.jars import spark_jars
from penstock.infra.java import find_java
from penstock.infra.kafka_access import spark_source
from penstock.infra.local.private import write_private
from penstock.infra.readiness import tell_ready
from penstock.infra.secret import read_secret
from penstock.pipelines.host.loading import send_by_value
from penstock.pipelines.host.run import HostConfig, run
from penstock.pipelines.plan import Plan
from penstock.pipelines.spark.session import SparkConfig
from penstock.pipelines.store.on_spark import reading_settings
from penstock.platform.alerts import Alerts
from penstock.platform.clock import now_ms
from penstock.platform.control import open_control
from penstock.platform.host.groups import StreamGroups
from penstock.platform.host.lag import lag_shown
from penstock.platform.host.metrics import HostMetrics
from penstock.platform.host.observed import ObservedControl
from penstock.platform.host.pages import folder_of
from penstock.platform.host.server import serving
from penstock.platform.registry import schemas_of
from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.streams import plan_anew
from penstock.platform.written import written_state
from penstock.quality.quarantine.sent_again import SentAgain


def spark_config(settings: Settings) -> SparkConfig:
    """How Spark is started for a host; of a cluster it leaves some cores to commands."""
    return SparkConfig(
        jars=spark_jars(settings.jars, *settings.spark_jar_sets),
        directory=settings.home / "spark",
        master=settings.spark.master,
        driver_host=settings.spark.driver_host,
        app_name="penstock-host",
        driver_memory=settings.spark.driver_memory,
        cores=settings.spark.host_cores,
        executor_memory=settings.spark.executor_memory,
        shuffle_partitions=settings.spark.shuffle_partitions,
        java_home=find_java().home,
        private=private_settings(settings),
        more=reading_settings(settings.tables),
        log_form=settings.host.log_format,
    )


def private_settings(settings: Settings) -> Path | None:
    """Write the file that tells Spark the secret of a secured master; only its owner may read it.

    None, and no file is left, where the master has none.
    """
    path = settings.home / "spark" / "private.properties"
    if not settings.spark.secret:
        path.unlink(missing_ok=True)
        return None
    secret = read_secret(settings.spark.secret, "The secret of Spark's master")
    told = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.network.crypto.enabled": "true",
    }
    write_private(path, "".join(f"{name} {value}\n" for name, value in told.items()))
    return path


def host_config(settings: Settings, metrics_port: int) -> HostConfig:
    """What the host is told; it shows its metrics on that port."""
    return HostConfig(
        spark=spark_config(settings),
        bootstrap=settings.kafka.servers,
        kafka=spark_source(settings.kafka.access, "host"),
        client=settings.kafka.client("host"),
        streams=settings.home / "streams",
        warehouse=settings.tables,
        schemas=schemas_of(settings).of,
        interval_ms=settings.host.batch_interval_ms,
        driver_budget=settings.host.driver_budget_mb * 2**20,
        lease_ms=int(settings.host.lease_seconds * 1000),
        park_after=settings.host.park_after,
        poison_limit=settings.host.poison_limit,
        sent_again=SentAgain(settings.home / "quarantine"),
        address=f"{LOOPBACK}:{metrics_port}",
    )


def _plan_for_host(name: str) -> Plan:
    """A pipeline as it is written now: so a restart of its stream is an upgrade."""
    plan = plan_anew(name)
    send_by_value(name)
    return plan


def run_host(settings: Settings) -> None:
    """Run streams until told to stop; the control store says which."""
    # In vain once, and in vain a new connection: a heartbeat after that is still within the lease.
    patience_s = max(settings.host.lease_seconds / 5, 1.0)
    store = open_control(settings.control_url, settings.control_secret, patience_s)
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    groups = StreamGroups(settings.kafka.servers, settings.kafka.client("host"))
    alerts = Alerts(settings.alerts.webhook)
    control = ObservedControl(store, HostMetrics(registry), groups.batch, alerts)
    try:
        metrics_port, pages = settings.host.metrics_port, folder_of(settings)
        broker, client = settings.kafka.servers, settings.kafka.client("host")
        with (
            serving(metrics_port, registry, lambda: control.streams, pages) as port,
            lag_shown(
                broker, client, lambda: control.at_work, lambda waits: control.show_lag(waits, now_ms())
            ),
        ):
            config = host_config(settings, port)
            run(config, control, _plan_for_host, now_ms, ready=tell_ready, written=written_state)
    finally:
        groups.close()
        alerts.close()
        store.close()
