"""Jobs that request states of streams."""

import threading
from pathlib import Path

import pytest
from dagster import DagsterInvalidConfigError

from penstock.core.clock import now_ms
from penstock.engine.host.control import DesiredRunState, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.control import ControlStore
from penstock.platform.errors import StackError
from penstock.platform.services.operator_actions import read_actions


def run_job(definitions, instance, job: str, **config: object):
    job_def = definitions.resolve_job_def(job)
    return job_def.execute_in_process(run_config=config, instance=instance)


@pytest.mark.parametrize(
    ("job", "desired"),
    [
        ("stream_start", DesiredRunState.RUNNING),
        ("stream_drain", DesiredRunState.DRAINED),
        ("stream_stop", DesiredRunState.STOPPED),
        ("stream_pause", DesiredRunState.PAUSED),
        ("stream_resume", DesiredRunState.RUNNING),
        ("stream_restart", DesiredRunState.RUNNING),
    ],
)
def test_a_job_records_the_desired_state(
    job: str, desired: DesiredRunState, build_small_platform, instance, store: ControlStore
) -> None:
    assert run_job(build_small_platform(), instance, job, stream="minute", wait_seconds=0.0).success
    assert store.read_desired_states()["minute"].desired is desired


@pytest.mark.parametrize(
    ("tags", "user"),
    [
        ({"user": "ada@example.org", "dagster/schedule_name": "nightly"}, "ada@example.org"),
        ({"dagster/schedule_name": "nightly"}, "schedule nightly"),
        ({"dagster/sensor_name": "watcher"}, "sensor watcher"),
        ({}, "unknown"),
    ],
)
def test_a_job_is_in_the_journal_of_actions_with_its_run_and_user(
    tags: dict[str, str], user: str, build_small_platform, instance, home: Path
) -> None:
    job = build_small_platform().resolve_job_def("stream_pause")
    config = {"stream": "minute", "wait_seconds": 0.0}
    run = job.execute_in_process(run_config=config, instance=instance, tags=tags)
    (action,) = read_actions(home)
    assert (action.action, action.target, action.user) == ("stream pause", "minute", user)
    assert (action.origin, action.details) == ("dagster", {"run": run.run_id})


def test_a_start_waits_until_a_host_runs_the_stream(
    build_small_platform, instance, store: ControlStore
) -> None:
    def report_running() -> None:
        lease = store.acquire_lease("minute", "host", now_ms(), 60_000)
        assert lease is not None
        store.report_health(StreamHealth("minute", StreamState.RUNNING, "", now_ms(), lease.epoch))

    host = threading.Timer(0.3, report_running)
    host.start()
    assert run_job(build_small_platform(), instance, "stream_start", stream="minute").success
    host.join()
    assert store.read_lease("minute") is not None


def test_a_start_without_a_host_fails_with_the_reason(build_small_platform, instance) -> None:
    with pytest.raises(StackError, match=r"minute is not running after 0.2 s \(no host has reported\)"):
        run_job(build_small_platform(), instance, "stream_start", stream="minute", wait_seconds=0.2)


def test_an_unknown_stream_is_refused_by_the_config(build_small_platform, instance) -> None:
    with pytest.raises(DagsterInvalidConfigError, match="nonsense"):
        run_job(build_small_platform(), instance, "stream_start", stream="nonsense")
