"""Watermarks ahead of the clock, and streams that wait for records."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, make_batches, run_batches

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.host.control import BatchRecord, DesiredRunState, DesiredState, Lease, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.engine.upgrade.stored_plan import store_plan
from penstock.platform.control.reports import StreamOverview
from penstock.platform.services.idle_inputs import IDLE_AFTER_MS, find_idle_inputs
from penstock.platform.services.watermark_ahead import WatermarkObserver, describe_ahead
from penstock.platform.settings.model import AlertSettings, StreamAlertLimits
from penstock.platform.stack.stack_view import StackView

NOW, YEAR_MS, HOUR_MS = 1_800_000_000_000, 365 * 86_400_000, 3_600_000
BATCH = BatchRecord("s", 7, 1, "data", NOW, NOW + YEAR_MS, ())
TOLERANT = AlertSettings.model_validate(
    {"of": {"s": StreamAlertLimits.model_validate({"max_watermark_ahead": "2h"})}}
)


@pytest.mark.parametrize(
    ("ahead_ms", "text"),
    [(YEAR_MS, "365 d"), (36 * HOUR_MS, "36 h"), (90 * 60_000, "90 min"), (90_000, "90 s"), (500, "0 s")],
)
def test_the_unit_follows_the_distance(ahead_ms: int, text: str) -> None:
    assert describe_ahead(ahead_ms) == f"the watermark is {text} in the future"


@pytest.mark.parametrize(
    ("alerts", "watermark_ms", "is_healthy"),
    [
        (AlertSettings(), NOW + YEAR_MS, False),
        (AlertSettings(), NOW + 60_000, True),
        (AlertSettings(), NOW + 60_001, False),
        (TOLERANT, NOW + HOUR_MS, True),
        (TOLERANT, NOW + 3 * HOUR_MS, False),
        (AlertSettings(), None, True),
    ],
)
def test_a_running_stream_whose_watermark_is_ahead_is_a_fault(
    alerts: AlertSettings, watermark_ms: int | None, is_healthy: bool
) -> None:
    running = StreamOverview(
        "s",
        DesiredState("s", DesiredRunState.RUNNING),
        0,
        Lease("s", "host", 1, NOW + 1),
        replace(BATCH, watermark_ms=watermark_ms),
        StreamHealth("s", StreamState.RUNNING, "", 0),
    )
    assert StackView(NOW, [], [running], alerts=alerts).is_stream_healthy(running) is is_healthy


def test_the_host_logs_a_watermark_ahead_once_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    observer = WatermarkObserver(AlertSettings())
    with caplog.at_level(logging.INFO):
        for record in (BATCH, replace(BATCH, batch_id=8), replace(BATCH, watermark_ms=NOW), BATCH):
            observer.observe_batch(record)
    events = [record.getMessage().split(";")[0].split(" (")[0] for record in caplog.records]
    ahead = "Watermark ahead of the clock"
    assert events == [ahead, "Watermark no longer ahead of the clock", ahead]
    assert "the watermark is 365 d in the future. See platform/docs/troubleshooting.md" in caplog.text


def test_a_stream_whose_inputs_are_idle_tells_how_many_windows_wait(tmp_path: Path) -> None:
    run_batches(Bench(PLANS["fixed"], tmp_path), batches=make_batches()[:3])
    store_plan(tmp_path / "stream", PLANS["fixed"])
    outcome = BatchJournal(tmp_path / "stream" / "journal").read_last_outcome()
    assert outcome is not None
    since_ms = max(mark.last_active_clock for mark in (outcome.watermark.marks or {}).values())
    assert (outcome.watermark.value, since_ms) == (7, 106)
    assert find_idle_inputs(tmp_path, "stream", since_ms + IDLE_AFTER_MS - 1) is None
    idle = find_idle_inputs(tmp_path, "stream", since_ms + IDLE_AFTER_MS)
    assert idle is not None
    # The windows [0, 10) of the keys a and b, and [10, 20) of a and c.
    assert idle.text == "waiting: all inputs idle; 4 open windows"
    assert find_idle_inputs(tmp_path, "unknown", NOW) is None
