"""Dagster's daemon, as the stack runs it: ready when each of its parts has given a sign of life.

Its parts (sensors, schedules, the queue of runs …) are threads, which write when they last lived into Dagster's
storage. That the process runs says nothing of them.
"""

import runpy
import sys
import threading

from dagster import DagsterInstance

from penstock.infra.readiness import tell_ready
from penstock.platform.clock import now_ms
from penstock.platform.definitions.names import SPARK

ASKED_EVERY_S = 0.25


def tell_when_all_live(begun_ms: int, stopped: threading.Event) -> None:
    """Return once every part that this instance needs has lived since that moment, or when told to stop."""
    with DagsterInstance.get() as instance:
        needed = set(instance.get_required_daemon_types())
        while not needed <= _living(instance, begun_ms):
            if stopped.wait(ASKED_EVERY_S):
                return
    tell_ready()


def _living(instance: DagsterInstance, since_ms: int) -> set[str]:
    beats = instance.get_daemon_heartbeats()
    return {kind for kind, beat in beats.items() if beat.timestamp * 1000 >= since_ms}


def limit_pool() -> None:
    """Have Dagster know how many runs may start a Spark: by itself it learns that too late for the first ones."""
    with DagsterInstance.get() as instance:
        instance.event_log_storage.initialize_concurrency_limit_to_default(SPARK)


def main(arguments: list[str]) -> None:
    """Become Dagster's daemon."""
    limit_pool()
    stopped = threading.Event()
    watching = threading.Thread(
        target=tell_when_all_live, args=(now_ms(), stopped), name="ready", daemon=True
    )
    watching.start()
    sys.argv = ["dagster-daemon", *arguments]
    try:
        runpy.run_module("dagster._daemon", run_name="__main__")
    finally:
        stopped.set()
        watching.join()


if __name__ == "__main__":
    main(sys.argv[1:])
