"""What a host does about a stream that fails: with a real control store, and streams that only tell."""

import pytest
from confluent_kafka import KafkaError, KafkaException
from prometheus_client import CollectorRegistry
from tests.platform.host.staging import STREAM, Stage

from penstock.engine.errors import DefinitionError, PublishError
from penstock.platform.errors import StackError
from penstock.platform.services.stream_lifecycle import wait_for_state

BAD = ArithmeticError("divided by nothing")
"""What a stream does to itself."""


def test_a_stream_that_keeps_failing_fails_for_good_with_the_reason_and_the_batch(stage: Stage) -> None:
    stage.failures += [BAD] * 5
    stage.wish("start")
    assert stage.state() == "retrying"
    stage.look_after_the_wait()
    stage.look_after_the_wait()
    told = stage.store.read_health(STREAM)
    assert told.state == "failed"
    assert told.reason == (
        "ArithmeticError: divided by nothing (batch 7, offsets t/0 10 to 20); failed 3 times in a row. "
        "To retry, run `penstock stream start s` or change the stream's files"
    )
    stage.look_after_the_wait()
    assert len(stage.streams) == 3, "a failed stream is left alone"
    assert stage.store.read_lease(STREAM).expires_at_ms == 0, "and others could have it"


def test_a_failed_stream_is_retried_on_request(stage: Stage) -> None:
    stage.failures += [BAD] * 3
    stage.wish("start")
    stage.look_after_the_wait()
    stage.look_after_the_wait()
    stage.wish("start")
    assert stage.state() == "running"


@pytest.mark.parametrize(("failures", "state"), [(1, "retrying"), (3, "failed")])
def test_a_stream_that_failed_and_is_not_to_run_any_more_is_in_no_trouble(
    seen: Stage, registry: CollectorRegistry, failures: int, state: str
) -> None:
    def shown(state: str) -> float | None:
        return registry.get_sample_value("penstock_stream_state", {"stream": STREAM, "state": state})

    seen.failures += [BAD] * failures
    seen.wish("start")
    for _ in range(failures - 1):
        seen.look_after_the_wait()
    assert (seen.state(), shown(state)) == (state, 1)
    seen.wish("drain")
    assert (seen.state(), shown(state), shown("drained")) == ("drained", 0, 1)
    seen.host.reconcile()
    seen.wish("start")
    assert seen.state() == "running", "without waiting for anything"


@pytest.mark.parametrize("word", ["start", "restart"])
def test_whoever_asks_for_a_stream_that_failed_need_not_wait_until_it_is_tried(
    stage: Stage, word: str
) -> None:
    stage.failures += [BAD] * 2
    stage.wish("start")
    stage.host.reconcile()
    assert (stage.calls, stage.state()) == (["start"], "retrying")
    stage.wish(word)
    stage.wish(word)
    assert (stage.calls[:3], stage.state()) == (["start"] * 3, "running")


def test_a_failed_stream_is_retried_when_its_files_change_and_only_then(stage: Stage) -> None:
    stage.failures += [DefinitionError("window", "not said", "Say where")] * 2
    stage.wish("start")
    stage.look_after_the_wait()
    assert (stage.state(), len(stage.streams)) == ("failed", 1)
    stage.written = "changed, and wrong in another way"
    stage.host.reconcile()
    stage.look_after_the_wait()
    assert (stage.state(), len(stage.streams)) == ("failed", 2)
    stage.written = "mended"
    stage.host.reconcile()
    assert (stage.state(), len(stage.streams)) == ("running", 3)


def test_a_change_while_a_stream_begins_is_not_missed(stage: Stage) -> None:
    stage.failures.append(DefinitionError("window", "not said", "Say where"))
    stage.meanwhile = lambda: setattr(stage, "written", "mended meanwhile")
    stage.wish("start")
    assert stage.state() == "failed"
    stage.host.reconcile()
    assert stage.state() == "running"


def test_a_permanent_error_fails_the_stream_immediately_and_the_waiting_command_reports_it(
    stage: Stage,
) -> None:
    stage.failures.append(DefinitionError("window", "not said", "Say where"))
    asked = stage.wish("start")
    assert stage.state() == "failed"
    with pytest.raises(StackError, match=r"s failed: DefinitionError: window: not said\. Say where"):
        wait_for_state(stage.store, asked, 60)


def test_a_stream_that_fails_at_work_is_put_away_and_begun_again(stage: Stage) -> None:
    stage.wish("start")
    stage.streams[0].ended = OSError("gone")
    stage.host.reconcile()
    assert (stage.calls, stage.state()) == (["start", "drain"], "retrying")
    stage.look_after_the_wait()
    assert (stage.calls[-1], stage.state()) == ("start", "running")


@pytest.mark.parametrize(
    "problem",
    [
        OSError("disk full"),
        KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN)),
        PublishError("t", "its broker is away"),
        RuntimeError("[STREAM_FAILED] org.apache.kafka.common.errors.TimeoutException: no answer"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_what_comes_from_around_a_stream_is_tried_for_ever(stage: Stage, problem: Exception) -> None:
    stage.failures += [problem] * 30
    stage.wish("start")
    for _ in range(29):
        assert stage.state() == "retrying"
        stage.look_after_the_wait()
    stage.look_after_the_wait()
    assert (stage.state(), len(stage.streams)) == ("running", 31)


def test_what_ones_own_code_says_parks_its_stream_whatever_it_says(stage: Stage) -> None:
    stage.failures += [RuntimeError("PythonException: java.net.ConnectException, as my own code says")] * 3
    stage.wish("start")
    stage.look_after_the_wait()
    stage.look_after_the_wait()
    assert stage.state() == "failed"


def test_every_try_that_fails_is_counted_also_when_the_reason_stays(
    seen: Stage, registry: CollectorRegistry
) -> None:
    seen.failures += [OSError("disk full")] * 4
    seen.wish("start")
    for _ in range(4):
        seen.look_after_the_wait()
    assert seen.state() == "running"
    assert registry.get_sample_value("penstock_stream_failures_total", {"stream": STREAM}) == 4
