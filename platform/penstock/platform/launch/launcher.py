"""One interface for every way to start a stream host.

A launcher runs the host until SIGTERM or SIGINT, lets it drain its streams, and returns the exit code. What keeps
the host running (the local stack, a container, a person) only needs `penstock host run`.
"""

from collections.abc import Callable, Mapping

from penstock.platform.settings import Settings

HostLauncher = Callable[[Settings], int]


def launch_host(settings: Settings) -> int:
    """Run the stream host in the way that `spark.launch` selects."""
    return LAUNCHERS[settings.spark.launch](settings)


def launch_in_session(settings: Settings) -> int:
    """Run the host in this process, with Spark's JVM as its child."""
    from penstock.platform.host.composition import run_host

    run_host(settings)
    return 0


def launch_by_spark_submit(settings: Settings) -> int:
    """Run the host as an application of spark-submit, here or on the cluster, and wait for it."""
    from penstock.platform.launch.spark_submit import run_spark_submit

    return run_spark_submit(settings)


LAUNCHERS: Mapping[str, HostLauncher] = {"session": launch_in_session, "submit": launch_by_spark_submit}
