"""Reports of a host to its control store, which may be unavailable, with fake streams."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.patience import PATIENCE_S
from tests.platform.host.host_harness import STREAM, HostHarness, build_outcome, list_reported_batches

from penstock.core.waiting import wait_until
from penstock.engine.host.control import DesiredState
from penstock.engine.host.control_reporter import to_batch_record
from penstock.platform.control import ControlStore


class UnavailableStore:
    """A store that raises on every call while it is unavailable."""

    def __init__(self, store: ControlStore) -> None:
        self._store = store
        self.is_unavailable = False

    def __getattr__(self, name: str) -> Any:
        if self.is_unavailable and not name.startswith("_"):
            raise OSError("the store is unavailable")
        return getattr(self._store, name)


def test_an_unavailable_store_stops_no_stream(
    harness: HostHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    harness.request("start")
    stop, desired, failures = (
        threading.Event(),
        harness.store.read_desired_states,
        [OSError("the store is unavailable")] * 3,
    )

    def read_or_fail() -> Mapping[str, DesiredState]:
        if failures:
            raise failures.pop()
        stop.set()
        return desired()

    monkeypatch.setattr(harness.store, "read_desired_states", read_or_fail)
    harness.host.run(stop)
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert messages == ["Reconciliation failed; running streams are unaffected"]
    assert harness.calls == ["start", "drain"], "it ran until the host was stopped"


def test_batches_without_a_store_are_reported_later_in_order(harness: HostHarness) -> None:
    store = UnavailableStore(harness.store)
    host = HostHarness(harness.store, control=store)
    host.request("start")
    (stream,) = host.streams
    stream.report_outcome(build_outcome(0))
    store.is_unavailable = True
    for number in (1, 2, 3):
        stream.report_outcome(build_outcome(number))
    store.is_unavailable = False
    stream.report_outcome(build_outcome(4))
    wait_until(
        lambda: list_reported_batches(harness.store) == [0, 1, 2, 3, 4],
        PATIENCE_S,
        "all batches to be reported in order",
    )


def test_the_next_host_reports_what_the_last_one_could_not(harness: HostHarness) -> None:
    harness.store.record_batch(to_batch_record(STREAM, build_outcome(2)))
    harness.retained = [build_outcome(number) for number in range(6)]
    harness.request("start")
    harness.streams[0].report_outcome(build_outcome(5))  # as a starting stream does
    harness.streams[0].report_outcome(build_outcome(6))
    harness.request("drain")
    wait_until(
        lambda: list_reported_batches(harness.store) == [2, 3, 4, 5, 6],
        PATIENCE_S,
        "all batches to be reported",
    )


def test_a_batch_that_the_store_rejects_does_not_block_the_next_ones(
    harness: HostHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.request("start")
    harness.streams[0].report_outcome(replace(build_outcome(0), panes={"of no timing": 1}))
    harness.streams[0].report_outcome(build_outcome(1))
    harness.request("drain")
    wait_until(
        lambda: list_reported_batches(harness.store) == [1], PATIENCE_S, "the next batch to be reported"
    )
    assert "Batch rejected by control store; its tables have it" in caplog.messages
