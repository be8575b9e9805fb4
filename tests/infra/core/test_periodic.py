"""Periodic calls: they continue after a failure, and end with their context."""

import threading

import pytest
from tests.patience import PATIENCE_S

from penstock.core.periodic import run_periodically


def test_a_failed_call_is_logged_and_repeated(caplog: pytest.LogCaptureFixture) -> None:
    succeeded, times = threading.Event(), 0

    def act() -> None:
        nonlocal times
        times += 1
        if times == 1:
            raise OSError("the store is unavailable")
        succeeded.set()

    with run_periodically(0.001, act, "heartbeat"):
        assert succeeded.wait(PATIENCE_S)
    (record,) = caplog.records
    assert record.getMessage() == "heartbeat failed, and is tried again in 0.001 s"
    assert "the store is unavailable" in str(record.exc_info)


def test_the_last_call_ends_before_its_context() -> None:
    started, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def act() -> None:
        started.set()
        may_end.wait(PATIENCE_S)
        ended.set()

    with run_periodically(0.001, act, "poll"):
        assert started.wait(PATIENCE_S)
        may_end.set()
    assert ended.is_set(), "the last one is waited for"
    assert not [thread for thread in threading.enumerate() if thread.name == "poll"]


def test_an_error_in_the_context_ends_the_calls() -> None:
    with pytest.raises(ValueError, match="inside"), run_periodically(60, lambda: None, "never"):
        raise ValueError("inside")
    assert not [thread for thread in threading.enumerate() if thread.name == "never"]
