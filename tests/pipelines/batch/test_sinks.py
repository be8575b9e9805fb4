"""What each kind of table takes of a stream's panes."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipelines.batch.stored import Bench
from tests.pipelines.batch.test_crashes import IN_ORDER, Fuse, plan_over, run

from penstock.pipelines.model import after_watermark, every, fixed
from penstock.pipelines.plan import FinalPanes, LatestValues, PaneLog
from penstock.pipelines.plan.windows import Sessions, Window


@pytest.fixture(params=[fixed(10), Sessions(8)], ids=["fixed", "sessions"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    window: Window = request.param
    stage = replace(
        IN_ORDER,
        window=window,
        trigger=after_watermark(early=every(4)),
        lateness=4,
        accumulation="retracting",
        final_pane="always",
        sinks=(PaneLog("stream"), LatestValues("stream"), FinalPanes("stream")),
    )
    done = Bench(plan_over(stage), tmp_path)
    run(done, Fuse(-1))
    return done


def test_the_final_table_has_each_last_pane_and_nothing_that_is_taken_back(bench: Bench) -> None:
    log = [row for row in bench.rows("panes/stream") if row["final"] and row["kind"] == "insert"]
    assert len(log) > 2
    assert bench.rows("final/stream") == log


def test_the_latest_value_is_what_inserts_less_retractions_leave(bench: Bench) -> None:
    standing: dict[tuple[object, ...], tuple[object, ...]] = {}
    for row in sorted(bench.rows("panes/stream"), key=lambda row: (row["batch_id"], row["kind"] == "insert")):
        window = (row["key"], row["window_start"], row["window_end"])
        if row["kind"] == "insert":
            standing[window] = (row["n"], row["total"], row["most"])
        else:
            assert standing.pop(window) == (row["n"], row["total"], row["most"])
    latest = {
        (row["key"], row["window_start"], row["window_end"]): (row["n"], row["total"], row["most"])
        for row in bench.rows("latest/stream")
    }
    assert latest == standing
