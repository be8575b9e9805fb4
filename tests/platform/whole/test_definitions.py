"""A pipeline's file is changed, broken and mended while its stream and others run; its table stays exact.

The tests are one story and run in their order.
"""

import os
import signal
import time
from math import isclose
from pathlib import Path

import duckdb
import pytest
from tests.platform.whole.changing import FEWER, NAME, write
from tests.platform.whole.expected import SETTLING_SECONDS, records_of, settled
from tests.platform.whole.stack import ScratchStack, until

pytestmark = [pytest.mark.whole, pytest.mark.timeout(300)]


@pytest.fixture
def catalog(running: ScratchStack) -> Path:
    """Where the stack has its pipelines."""
    return running.catalog


def goes_on(stack: ScratchStack, batches: int = 1) -> bool:
    """Whether the stream runs and commits more batches."""
    batch = stack.batch(NAME)
    return bool(
        until(lambda: stack.batch(NAME) >= batch + batches and stack.state(NAME) == "running", 60, "batches")
    )


def planned(stack: ScratchStack, *more: str) -> str:
    return stack.run("stream", "plan-upgrade", NAME, *more).stdout


def test_a_changed_lateness_is_taken_up_by_an_upgrade_and_the_state_is_kept(
    running: ScratchStack, catalog: Path
) -> None:
    write(catalog, outputs="n=count(), warmest=max_('temperature')")
    running.must("stream", "start", NAME)
    assert goes_on(running, 3)
    write(catalog, outputs="n=count(), warmest=max_('temperature')", lateness="30 minutes")
    assert f"{NAME}.py changed since the start" in running.run("status").stdout
    assert "compatible" in planned(running)
    running.must("stream", "upgrade", NAME, "--yes")
    assert "no changes" in planned(running)
    assert goes_on(running)


def test_a_column_is_taken_out_of_the_state_by_dagsters_job(running: ScratchStack, catalog: Path) -> None:
    write(catalog, outputs="n=count()", lateness="30 minutes")
    assert "migratable" in planned(running)
    running.launch("stream_upgrade", stream=NAME, accept="migratable")
    assert "no changes" in planned(running)
    assert goes_on(running)


def test_a_change_in_a_shared_module_is_told_and_taken_up(running: ScratchStack, catalog: Path) -> None:
    write(catalog, told=FEWER, outputs="n=count()", lateness="30 minutes")
    assert "_measured.py changed since the start" in running.run("status").stdout
    assert "measured" in planned(running)
    running.must("stream", "restart", NAME)
    assert "no changes" in planned(running)
    assert goes_on(running)


def test_another_key_takes_a_replay_and_the_table_takes_it_whole(
    running: ScratchStack, catalog: Path
) -> None:
    """So it has the changes before it over all records, too, which held from then on when they were taken up."""
    write(catalog, told=FEWER, key="site", outputs="n=count(), mean=mean('temperature')")
    assert "replay" in planned(running)
    running.must("stream", "upgrade", NAME, "--from", "offset:0", "--yes", seconds=180)
    assert "no changes" in planned(running)
    assert goes_on(running)


def test_a_host_that_begins_anew_parks_what_is_broken_and_runs_the_rest(
    running: ScratchStack, catalog: Path
) -> None:
    sound = (catalog / "_measured.py").read_text("utf-8")
    (catalog / "_measured.py").write_text("import nobody_wrote_this\n", "utf-8")
    batch = running.batch()
    os.kill(running.pids()["host"], signal.SIGKILL)
    until(lambda: running.state(NAME) == "failed", 120, "the stream to fail")
    (told,) = (one for one in running.status()["streams"] if one["stream"] == NAME)
    assert "No module named 'nobody_wrote_this', at line 1 of " in told["health"]["reason"]
    assert str(catalog / "_measured.py") in told["health"]["reason"]
    until(lambda: running.batch() > batch + 3, 60, "batches of another stream")
    (catalog / "_measured.py").write_text(sound, "utf-8")
    assert goes_on(running), "nobody asked for it: the file was mended"


def test_after_all_this_the_table_holds_what_the_topic_does(running: ScratchStack) -> None:
    with running.without_feed():
        settled(running)
        deadline = time.monotonic() + SETTLING_SECONDS
        while differ := differing(expected(running), latest(running)):
            assert time.monotonic() < deadline, f"{len(differ)} rows differ: {differ[:6]}"
            time.sleep(0.5)
        words = ("--from", "time:2026-01-01T00:00", "--beside", "--name", "beside")
        running.must("stream", "replay", NAME, *words, seconds=180)
        assert not differing(expected(running), latest(running, "runs/changing/beside/latest"))
    running.must("stream", "drain", NAME)


Means = dict[tuple[object, ...], float]
"""The mean of each site and minute, with the number of records that it is of."""


def differing(one: Means, other: Means) -> list[tuple[object, ...]]:
    """The windows in which the two differ; sums of doubles differ in their last digits by the order of addition."""
    alone = set(one) ^ set(other)
    apart = {place for place in set(one) & set(other) if not isclose(one[place], other[place], rel_tol=1e-12)}
    return sorted(alone | apart, key=repr)


def expected(stack: ScratchStack) -> Means:
    """What the last definition makes of the topic's own bytes."""
    records = records_of(stack.values())
    assert records.num_rows
    query = f"SELECT site, minute, count(*), avg(temperature) FROM records WHERE {FEWER} GROUP BY ALL"
    return {tuple(place): mean for *place, mean in duckdb.connect().sql(query).fetchall()}


def latest(stack: ScratchStack, folder: str = "latest") -> Means:
    """What its table tells."""
    told = duckdb.from_arrow(stack.table(folder, NAME))
    rows = told.query("told", "SELECT site, epoch_ms(window_start), n, mean FROM told").fetchall()
    assert rows
    means = {tuple(place): mean for *place, mean in rows}
    assert len(rows) == len(means), "a window has two rows"
    return means
