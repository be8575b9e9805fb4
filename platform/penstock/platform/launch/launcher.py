"""Starts a stream host in the way that `spark.launch` selects.

The host runs until SIGTERM or SIGINT and drains its streams. What keeps it running (the local stack, a container,
a person) only needs `penstock host run`.
"""

from penstock.platform.settings import Settings


def launch_host(settings: Settings) -> int:
    """Run the host in this process, with Spark's JVM as its child, or by spark-submit; return the exit code."""
    if settings.spark.launch == "submit":
        from penstock.platform.launch.spark_submit import run_spark_submit

        return run_spark_submit(settings)
    from penstock.platform.host.composition import run_host

    run_host(settings)
    return 0
