"""Which ways to begin a stream host go together: refused when settings are read, not after Spark was asked."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.platform.settings.model import Settings, SparkSettings

MANAGED_MASTER_PREFIXES = ("yarn", "k8s://")
"""How masters begin that run a Python driver themselves."""


def is_managed_master(master: str) -> bool:
    """Whether a master runs drivers, too."""
    return master.startswith(MANAGED_MASTER_PREFIXES)


def find_launch_conflict(settings: "Settings") -> str | None:
    """Say in one sentence why the host cannot be begun as it is set; None where it can."""
    spark = settings.spark
    if spark.launch == "session":
        return _find_session_conflict(spark)
    return _find_cluster_conflict(settings) if spark.deploy_mode == "cluster" else None


def _find_session_conflict(spark: "SparkSettings") -> str | None:
    if spark.deploy_mode == "cluster":
        return 'spark.deploy_mode "cluster" is a word for spark-submit: set spark.launch = "submit", too'
    if spark.properties:
        return 'spark.properties is a file for spark-submit: set spark.launch = "submit", too'
    return None


def _find_cluster_conflict(settings: "Settings") -> str | None:
    """The driver is on a machine of the cluster's choice: what it needs has to be there as well."""
    spark, cluster = settings.spark, 'spark.deploy_mode "cluster"'
    if spark.master.startswith("spark://"):
        return (
            f"{cluster} cannot be on {spark.master}: standalone Spark takes no Python application in cluster "
            'mode; set "client", or a master yarn or k8s://…'
        )
    if not is_managed_master(spark.master):
        return f"{cluster} cannot be on {spark.master}, which is this machine: set a master yarn or k8s://…"
    if settings.control_url.startswith("sqlite:"):
        return f"{cluster} needs a control store that other machines reach: set control_url to postgresql://…"
    if not settings.kafka.bootstrap:
        return f"{cluster} needs a broker that other machines reach: set kafka.bootstrap"
    if spark.secret:
        return f"spark.secret is for spark://…: {spark.master} has secrets of its own; unset it"
    return None
