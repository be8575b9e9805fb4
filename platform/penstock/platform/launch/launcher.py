"""One interface for every way to begin a stream host.

A launcher takes settings, runs the host until SIGTERM or SIGINT, has it drain its streams then, and returns what to
end with. Whoever keeps the host (the local stack, a container, a person) knows `penstock host run` alone.
"""

from collections.abc import Callable, Mapping

from penstock.platform.settings import Settings

Launcher = Callable[[Settings], int]


def launch(settings: Settings) -> int:
    """Run the stream host as `spark.launch` says."""
    return LAUNCHERS[settings.spark.launch](settings)


def in_a_session_of_its_own(settings: Settings) -> int:
    """The host is this process, and Spark's Java machine its child."""
    from penstock.platform.host.compose import run_host

    run_host(settings)
    return 0


def by_spark_submit(settings: Settings) -> int:
    """The host is an application that spark-submit begins, here or on the cluster; this process waits for it."""
    from penstock.platform.launch.submitted import run_submitted

    return run_submitted(settings)


LAUNCHERS: Mapping[str, Launcher] = {"session": in_a_session_of_its_own, "submit": by_spark_submit}
