"""One interface for every way to begin a stream host.

A launcher takes settings, runs the host until SIGTERM or SIGINT, has it drain its streams then, and returns what to
end with. Whoever keeps the host (the local stack, a container, a person) knows `penstock host run` alone.
"""

from collections.abc import Callable, Mapping

from penstock.platform.settings import Settings

HostLauncher = Callable[[Settings], int]


def launch_host(settings: Settings) -> int:
    """Run the stream host as `spark.launch` says."""
    return LAUNCHERS[settings.spark.launch](settings)


def launch_in_session(settings: Settings) -> int:
    """The host is this process, and Spark's Java machine its child."""
    from penstock.platform.host.composition import run_host

    run_host(settings)
    return 0


def launch_by_spark_submit(settings: Settings) -> int:
    """The host is an application that spark-submit begins, here or on the cluster; this process waits for it."""
    from penstock.platform.launch.spark_submit import run_spark_submit

    return run_spark_submit(settings)


LAUNCHERS: Mapping[str, HostLauncher] = {"session": launch_in_session, "submit": launch_by_spark_submit}
