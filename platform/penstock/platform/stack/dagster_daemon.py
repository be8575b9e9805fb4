"""Dagster's daemon as the stack runs it: ready when each of its daemon threads has written a heartbeat.

The daemon threads (sensors, schedules, run queue …) write heartbeats to Dagster's storage. A running process does
not prove that they work.
"""

import runpy
import sys
import threading

from dagster import DagsterInstance

from penstock.core.clock import now_ms
from penstock.infra.readiness import report_ready
from penstock.platform.definitions.asset_keys import SPARK_POOL

POLL_INTERVAL_S = 0.25


def report_ready_when_live(started_ms: int, stopped: threading.Event) -> None:
    """Report readiness when every required daemon has a heartbeat after the start; return early when stopped."""
    with DagsterInstance.get() as instance:
        required_types = set(instance.get_required_daemon_types())
        while not required_types <= _live_daemon_types(instance, started_ms):
            if stopped.wait(POLL_INTERVAL_S):
                return
    report_ready()


def _live_daemon_types(instance: DagsterInstance, since_ms: int) -> set[str]:
    heartbeats = instance.get_daemon_heartbeats()
    return {kind for kind, beat in heartbeats.items() if beat.timestamp * 1000 >= since_ms}


def set_pool_limit() -> None:
    """Create the limit of the Spark pool. Dagster creates it only after the first runs have started."""
    with DagsterInstance.get() as instance:
        instance.event_log_storage.initialize_concurrency_limit_to_default(SPARK_POOL)


def main(arguments: list[str]) -> None:
    """Replace this program with Dagster's daemon."""
    set_pool_limit()
    stopped = threading.Event()
    watcher = threading.Thread(
        target=report_ready_when_live, args=(now_ms(), stopped), name="ready", daemon=True
    )
    watcher.start()
    sys.argv = ["dagster-daemon", *arguments]
    try:
        runpy.run_module("dagster._daemon", run_name="__main__")
    finally:
        stopped.set()
        watcher.join()


if __name__ == "__main__":
    main(sys.argv[1:])
