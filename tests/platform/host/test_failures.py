"""How a host handles failures of a stream, with a real control store and fake streams."""

import pytest
from confluent_kafka import KafkaError, KafkaException
from prometheus_client import CollectorRegistry
from tests.platform.host.host_harness import HARNESS_PLACE, STREAM, HostHarness, hide_line

from penstock.engine.errors import DefinitionError, PublishError, TopicUnavailableError
from penstock.platform.errors import StackError
from penstock.platform.services.stream_lifecycle import wait_for_state

UNKNOWN_ERROR = ArithmeticError("division by zero")
"""An error that is neither transient nor permanent."""


def test_a_stream_fails_permanently_after_its_retries_with_reason_and_batch(
    harness: HostHarness,
) -> None:
    harness.failures += [UNKNOWN_ERROR] * 5
    harness.request("start")
    assert harness.state() == "retrying"
    harness.reconcile_after_backoff()
    harness.reconcile_after_backoff()
    health = harness.store.read_health(STREAM)
    assert health.state == "failed"
    assert hide_line(health.reason_summary) == (
        f"start ({HARNESS_PLACE}): ArithmeticError: division by zero (batch 7, offsets t/0 10 to 20); "
        "failed 3 times in a row. To retry, run `penstock stream start s` or change the stream's files"
    )
    assert health.reason_details.startswith("Traceback (most recent call last):\n  tests/platform/host/")
    harness.reconcile_after_backoff()
    assert len(harness.streams) == 3, "a failed stream is left alone"
    assert harness.store.read_lease(STREAM).expires_at_ms == 0, "and others could have it"


def test_a_failed_stream_is_retried_on_request(harness: HostHarness) -> None:
    harness.failures += [UNKNOWN_ERROR] * 3
    harness.request("start")
    harness.reconcile_after_backoff()
    harness.reconcile_after_backoff()
    harness.request("start")
    assert harness.state() == "running"


@pytest.mark.parametrize(("failures", "state"), [(1, "retrying"), (3, "failed")])
def test_a_failed_stream_that_is_drained_counts_as_healthy(
    observed: HostHarness, registry: CollectorRegistry, failures: int, state: str
) -> None:
    def read_state_metric(state: str) -> float | None:
        return registry.get_sample_value("penstock_stream_state", {"stream": STREAM, "state": state})

    observed.failures += [UNKNOWN_ERROR] * failures
    observed.request("start")
    for _ in range(failures - 1):
        observed.reconcile_after_backoff()
    assert (observed.state(), read_state_metric(state)) == (state, 1)
    observed.request("drain")
    assert (observed.state(), read_state_metric(state), read_state_metric("drained")) == ("drained", 0, 1)
    observed.host.reconcile()
    observed.request("start")
    assert observed.state() == "running", "without a backoff"


@pytest.mark.parametrize("command", ["start", "restart"])
def test_a_request_for_a_failed_stream_skips_the_backoff(harness: HostHarness, command: str) -> None:
    harness.failures += [UNKNOWN_ERROR] * 2
    harness.request("start")
    harness.host.reconcile()
    assert (harness.calls, harness.state()) == (["start"], "retrying")
    harness.request(command)
    harness.request(command)
    assert (harness.calls[:3], harness.state()) == (["start"] * 3, "running")


def test_a_failed_stream_is_retried_when_its_files_change_and_only_then(harness: HostHarness) -> None:
    harness.failures += [DefinitionError("window", "missing", "Add it")] * 2
    harness.request("start")
    harness.reconcile_after_backoff()
    assert (harness.state(), len(harness.streams)) == ("failed", 1)
    harness.definition_version = "changed, and wrong in another way"
    harness.host.reconcile()
    harness.reconcile_after_backoff()
    assert (harness.state(), len(harness.streams)) == ("failed", 2)
    harness.definition_version = "fixed"
    harness.host.reconcile()
    assert (harness.state(), len(harness.streams)) == ("running", 3)


def test_a_change_while_a_stream_starts_is_not_missed(harness: HostHarness) -> None:
    harness.failures.append(DefinitionError("window", "missing", "Add it"))
    harness.before_create = lambda: setattr(harness, "definition_version", "fixed meanwhile")
    harness.request("start")
    assert harness.state() == "failed"
    harness.host.reconcile()
    assert harness.state() == "running"


def test_a_permanent_error_fails_the_stream_immediately_and_the_waiting_command_reports_it(
    harness: HostHarness,
) -> None:
    harness.failures.append(DefinitionError("window", "missing", "Add it"))
    request = harness.request("start")
    assert harness.state() == "failed"
    with pytest.raises(StackError, match=r"s failed: window: missing\. Add it"):
        wait_for_state(harness.store, request, 60)


def test_a_waiting_command_says_why_the_stream_is_retried(harness: HostHarness) -> None:
    harness.failures.append(TopicUnavailableError("s", ["returns"], "Unknown topic", is_missing=True))
    request = harness.request("start")
    assert harness.state() == "retrying"
    message = (
        r"is not running after 0\.01 s, and is retried: stream s: topic returns does not exist\. Create it with "
        r"`penstock topics apply`; the stream then starts by itself"
    )
    with pytest.raises(StackError, match=message):
        wait_for_state(harness.store, request, 0.01)


def test_a_stream_that_fails_while_running_is_drained_and_restarted(harness: HostHarness) -> None:
    harness.request("start")
    harness.streams[0].running_failure = OSError("gone")
    harness.host.reconcile()
    assert (harness.calls, harness.state()) == (["start", "drain"], "retrying")
    harness.reconcile_after_backoff()
    assert (harness.calls[-1], harness.state()) == ("start", "running")


@pytest.mark.parametrize(
    "problem",
    [
        OSError("disk full"),
        KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)),
        PublishError("t", "the broker is unavailable"),
        RuntimeError("[STREAM_FAILED] org.apache.kafka.common.errors.TimeoutException: no answer"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_transient_errors_are_retried_without_end(harness: HostHarness, problem: Exception) -> None:
    harness.failures += [problem] * 30
    harness.request("start")
    for _ in range(29):
        assert harness.state() == "retrying"
        harness.reconcile_after_backoff()
    harness.reconcile_after_backoff()
    assert (harness.state(), len(harness.streams)) == ("running", 31)


def test_an_error_of_user_code_fails_its_stream_whatever_its_text(harness: HostHarness) -> None:
    harness.failures += [RuntimeError("PythonException: java.net.ConnectException, as my own code says")] * 3
    harness.request("start")
    harness.reconcile_after_backoff()
    harness.reconcile_after_backoff()
    assert harness.state() == "failed"


def test_every_failure_is_counted_even_with_the_same_reason(
    observed: HostHarness, registry: CollectorRegistry
) -> None:
    observed.failures += [OSError("disk full")] * 4
    observed.request("start")
    for _ in range(4):
        observed.reconcile_after_backoff()
    assert observed.state() == "running"
    assert registry.get_sample_value("penstock_stream_failures_total", {"stream": STREAM}) == 4
