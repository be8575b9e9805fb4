"""Which launch settings of a stream host fit together; checked when settings are read, before Spark starts."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.platform.settings.model import Settings, SparkSettings

MANAGED_MASTER_PREFIXES = ("yarn", "k8s://")
"""Prefixes of masters that can run a Python driver on the cluster."""


def is_managed_master(master: str) -> bool:
    """Return whether a master can run drivers on the cluster."""
    return master.startswith(MANAGED_MASTER_PREFIXES)


def find_launch_conflict(settings: "Settings") -> str | None:
    """Return one sentence on why the host cannot be launched with these settings; None if it can."""
    spark = settings.spark
    if spark.launch == "session":
        return _find_session_conflict(spark)
    return _find_cluster_conflict(settings) if spark.deploy_mode == "cluster" else None


def _find_session_conflict(spark: "SparkSettings") -> str | None:
    if spark.deploy_mode == "cluster":
        return 'spark.deploy_mode "cluster" requires spark-submit. Set spark.launch = "submit" as well'
    if spark.properties:
        return 'spark.properties requires spark-submit. Set spark.launch = "submit" as well'
    return None


def _find_cluster_conflict(settings: "Settings") -> str | None:
    """Check what a driver on any machine of the cluster needs to reach."""
    spark, cluster = settings.spark, 'spark.deploy_mode "cluster"'
    if spark.master.startswith("spark://"):
        return (
            f"{cluster} does not work with {spark.master}: standalone Spark does not accept Python applications "
            'in cluster mode. Set "client", or a master yarn or k8s://…'
        )
    if not is_managed_master(spark.master):
        return f"{cluster} does not work with {spark.master}, which is this machine. Set a master yarn or k8s://…"
    if settings.control_url.startswith("sqlite:"):
        return f"{cluster} needs a control store that other machines can reach. Set control_url to postgresql://…"
    if not settings.kafka.bootstrap:
        return f"{cluster} needs a broker that other machines can reach. Set kafka.bootstrap"
    if spark.secret:
        return f"spark.secret only works with spark://…; {spark.master} has its own secrets. Unset it"
    return None
