"""The audit of a running stream."""

import json

import pytest
from tests.patience import PATIENCE_S
from tests.platform.whole.scratch_stack import ScratchStack, poll_until
from tests.platform.whole.table_comparison import AUDIT_TIMEOUT_S

pytestmark = pytest.mark.whole


def test_a_running_stream_passes_its_audit(running: ScratchStack) -> None:
    poll_until(lambda: running.batch("archive-sensors") > 0, PATIENCE_S, "the archive")
    batch = running.batch()
    result = running.run("audit", "sensor_minute", "--json", seconds=AUDIT_TIMEOUT_S)
    report = json.loads(result.stdout)
    states = {verdict["check"]: verdict["state"] for verdict in report["verdicts"]}
    assert result.returncode == 0, report["verdicts"]
    assert report["upto"] >= batch
    # Windows stay open for an hour, and the stack is young.
    assert states.pop("results") == "unproven"
    assert set(states.values()) == {"passed"}, report["verdicts"]
    poll_until(lambda: running.batch() > report["upto"], PATIENCE_S, "a batch after those that were audited")


def test_a_valid_feed_leaves_the_quarantine_empty(running: ScratchStack) -> None:
    document = json.loads(running.run_checked("quarantine", "list", "sensors", "--json"))
    assert document["counts"] == {"pending": 0, "replaying": 0, "replayed": 0, "discarded": 0}
