"""The audit of a stream that runs, with a feed that goes on writing meanwhile."""

import json

import pytest
from tests.platform.whole.books import AUDIT_SECONDS
from tests.platform.whole.stack import ScratchStack, until

pytestmark = [pytest.mark.whole, pytest.mark.timeout(600)]


def test_a_stream_is_proved_while_it_runs(running: ScratchStack) -> None:
    until(lambda: running.batch("archive-sensors") > 0, 60, "the archive")
    batch = running.batch()
    done = running.run("audit", "sensor_minute", "--json", seconds=AUDIT_SECONDS)
    report = json.loads(done.stdout)
    states = {verdict["check"]: verdict["state"] for verdict in report["verdicts"]}
    assert done.returncode == 0, report["verdicts"]
    assert report["upto"] >= batch
    # Windows stay open for an hour, and the stack is young.
    assert states.pop("results") == "unproven"
    assert set(states.values()) == {"passed"}, report["verdicts"]
    until(lambda: running.batch() > report["upto"], 60, "a batch after those that were audited")


def test_nothing_is_in_quarantine_of_a_feed_that_keeps_its_contract(running: ScratchStack) -> None:
    told = json.loads(running.must("quarantine", "list", "sensors", "--json"))
    assert told["counts"] == {"pending": 0, "replaying": 0, "replayed": 0, "discarded": 0}
