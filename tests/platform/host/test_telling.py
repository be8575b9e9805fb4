"""What a host reports to its control store, with a real store that may be away, and fake streams."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.platform.host.staging import STREAM, HostHarness, outcome, told

from penstock.core.waiting import wait_until
from penstock.engine.host.control import DesiredState
from penstock.engine.host.control_reporter import to_batch_record
from penstock.platform.control import ControlStore


class Away:
    """Stands before a store: while it is away, nobody learns or tells anything."""

    def __init__(self, store: ControlStore) -> None:
        self._store = store
        self.away = False

    def __getattr__(self, name: str) -> Any:
        if self.away and not name.startswith("_"):
            raise OSError("no way to the store")
        return getattr(self._store, name)


def test_a_store_that_does_not_answer_for_a_while_stops_no_stream(
    harness: HostHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    harness.request("start")
    stop, desired, troubles = (
        threading.Event(),
        harness.store.read_desired_states,
        [OSError("no way to the store")] * 3,
    )

    def asked() -> Mapping[str, DesiredState]:
        if troubles:
            raise troubles.pop()
        stop.set()
        return desired()

    monkeypatch.setattr(harness.store, "read_desired_states", asked)
    harness.host.run(stop)
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert told == ["Reconciliation failed; running streams are unaffected"]
    assert harness.calls == ["start", "drain"], "it ran until the host was stopped"


def test_batches_without_a_store_are_reported_later_in_order(harness: HostHarness) -> None:
    before = Away(harness.store)
    host = HostHarness(harness.store, control=before)
    host.request("start")
    (stream,) = host.streams
    stream.told(outcome(0))
    before.away = True
    for number in (1, 2, 3):
        stream.told(outcome(number))
    before.away = False
    stream.told(outcome(4))
    wait_until(lambda: told(harness.store) == [0, 1, 2, 3, 4], 30, "all to be told, in order")


def test_the_next_host_reports_what_the_last_one_could_not(harness: HostHarness) -> None:
    harness.store.record_batch(to_batch_record(STREAM, outcome(2)))
    harness.kept = [outcome(number) for number in range(6)]
    harness.request("start")
    harness.streams[0].told(outcome(5))  # as a stream does that is begun
    harness.streams[0].told(outcome(6))
    harness.request("drain")
    wait_until(lambda: told(harness.store) == [2, 3, 4, 5, 6], 30, "what it did not wait for to be told")


def test_a_batch_that_the_store_rejects_does_not_block_the_next_ones(
    harness: HostHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.request("start")
    harness.streams[0].told(replace(outcome(0), panes={"of no timing": 1}))
    harness.streams[0].told(outcome(1))
    harness.request("drain")
    wait_until(lambda: told(harness.store) == [1], 30, "the next one to be told")
    assert "Batch rejected by control store; its tables have it" in caplog.messages
