"""What is repeated goes on after it failed, and ends with its context."""

import threading

import pytest

from penstock.core.periodic import run_periodically

PATIENCE_S = 30.0


def test_what_failed_is_tried_again_and_said(caplog: pytest.LogCaptureFixture) -> None:
    done, times = threading.Event(), 0

    def act() -> None:
        nonlocal times
        times += 1
        if times == 1:
            raise OSError("the store is away")
        done.set()

    with run_periodically(0.001, act, "heartbeat"):
        assert done.wait(PATIENCE_S)
    (said,) = caplog.records
    assert said.getMessage() == "heartbeat failed, and is tried again in 0.001 s"
    assert "the store is away" in str(said.exc_info)


def test_nothing_is_done_any_more_once_the_context_is_over() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def act() -> None:
        begun.set()
        may_end.wait(PATIENCE_S)
        ended.set()

    with run_periodically(0.001, act, "look"):
        assert begun.wait(PATIENCE_S)
        may_end.set()
    assert ended.is_set(), "the last one is waited for"
    assert not [each for each in threading.enumerate() if each.name == "look"]


def test_what_fails_inside_ends_it_and_is_raised() -> None:
    with pytest.raises(ValueError, match="inside"), run_periodically(60, lambda: None, "never"):
        raise ValueError("inside")
    assert not [each for each in threading.enumerate() if each.name == "never"]
