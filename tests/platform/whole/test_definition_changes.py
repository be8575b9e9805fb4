"""Changes of a pipeline's file while its stream runs: the table stays exact.

The tests build on each other and run in this order.
"""

import json
import os
import signal
import time
from contextlib import closing
from math import isclose
from pathlib import Path

import duckdb
import pytest
from tests.patience import PATIENCE_S
from tests.platform.whole.changing_pipeline import FIRST_DEVICES, NAME, write_pipeline
from tests.platform.whole.expected_windows import parse_readings, wait_for_windows
from tests.platform.whole.failing_pipelines import BUGGY, write_failing_pipelines
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

from penstock.engine.batch.stream_claim import make_stream_claim
from penstock.engine.errors import TableOwnedError
from penstock.engine.host.control import DesiredRunState
from penstock.engine.tables.batch_table import claim_existing_tables
from penstock.platform.control import open_control_store

pytestmark = pytest.mark.whole


@pytest.fixture
def catalog(running: ScratchStack) -> Path:
    """The catalog folder of the stack."""
    return running.catalog


def commits_batches(stack: ScratchStack, batches: int = 1) -> bool:
    """Whether the stream runs and commits more batches."""
    batch = stack.batch(NAME)
    return bool(
        poll_until(
            lambda: stack.batch(NAME) >= batch + batches and stack.state(NAME) == "running",
            PATIENCE_S,
            "batches",
        )
    )


def plan_upgrade(stack: ScratchStack, *options: str) -> str:
    return stack.run("stream", "plan-upgrade", NAME, *options).stdout


def test_an_upgrade_applies_a_changed_lateness_and_keeps_the_state(
    running: ScratchStack, catalog: Path
) -> None:
    write_pipeline(catalog, outputs="n=count(), warmest=max_('temperature')")
    running.run_checked("stream", "start", NAME)
    assert commits_batches(running, 3)
    write_pipeline(catalog, outputs="n=count(), warmest=max_('temperature')", lateness="30 minutes")
    assert f"{NAME}.py changed since the start" in running.run("status").stdout
    assert "compatible" in plan_upgrade(running)
    running.run_checked("stream", "upgrade", NAME, "--yes")
    assert "no changes" in plan_upgrade(running)
    assert commits_batches(running)


def test_the_dagster_job_removes_a_column_from_the_state(running: ScratchStack, catalog: Path) -> None:
    write_pipeline(catalog, outputs="n=count()", lateness="30 minutes")
    assert "migratable" in plan_upgrade(running)
    running.launch("stream_upgrade", stream=NAME, accept="migratable")
    assert "no changes" in plan_upgrade(running)
    assert commits_batches(running)


def test_a_change_of_a_shared_module_is_shown_and_applied(running: ScratchStack, catalog: Path) -> None:
    write_pipeline(catalog, condition=FIRST_DEVICES, outputs="n=count()", lateness="30 minutes")
    assert "_measured.py changed since the start" in running.run("status").stdout
    assert "measured" in plan_upgrade(running)
    running.run_checked("stream", "restart", NAME)
    assert "no changes" in plan_upgrade(running)
    assert commits_batches(running)


def test_another_key_needs_a_replay_of_all_records(running: ScratchStack, catalog: Path) -> None:
    """The replay applies the earlier changes to all records, too."""
    write_pipeline(
        catalog, condition=FIRST_DEVICES, key="site", outputs="n=count(), mean=mean('temperature')"
    )
    assert "replay" in plan_upgrade(running)
    running.run_checked("stream", "upgrade", NAME, "--from", "offset:0", "--yes", seconds=180)
    assert "no changes" in plan_upgrade(running)
    assert commits_batches(running)


def test_a_restarted_host_fails_an_invalid_stream_and_runs_the_others(
    running: ScratchStack, catalog: Path
) -> None:
    original = (catalog / "_measured.py").read_text("utf-8")
    (catalog / "_measured.py").write_text("import no_such_module\n", "utf-8")
    batch = running.batch()
    os.kill(running.pids()["host"], signal.SIGKILL)
    poll_until(lambda: running.state(NAME) == "failed", PATIENCE_S, "the stream to fail")
    (stream_status,) = (entry for entry in running.status()["streams"] if entry["stream"] == NAME)
    assert (
        "_measured.py:1: ModuleNotFoundError: No module named 'no_such_module'"
        in stream_status["health"]["reason"]
    )
    poll_until(lambda: running.batch() > batch + 3, PATIENCE_S, "batches of another stream")
    (catalog / "_measured.py").write_text(original, "utf-8")
    assert commits_batches(running), "the changed file restarts it"


CLASH = f"""
from penstock.stream import count, fixed, read

clash = read("sensors").key("site").aggregate(intruders=count()).window(fixed("30 seconds")).write("{NAME}")
"""


def test_a_second_pipeline_cannot_write_the_table_of_the_first(
    running: ScratchStack, catalog: Path, tmp_path: Path
) -> None:
    columns = running.table("latest", NAME).column_names
    (catalog / "clash.py").write_text(CLASH, "utf-8")
    refusal = f"write: table '{NAME}' already belongs to pipeline {NAME} ("
    for arguments in (("explain", "clash"), ("stream", "start", "clash")):
        refused = running.run(*arguments)
        assert (refused.returncode, refusal in refused.stderr) == (2, True), refused.stderr
    (problem,) = running.status()["invalid_files"]
    assert (problem["name"], refusal in problem["message"]) == ("clash", True)
    assert refusal in running.run("doctor").stdout
    with closing(open_control_store(running.control_url)) as store:  # an older command line asks for it
        store.set_desired_state("clash", DesiredRunState.RUNNING, 0)
    poll_until(lambda: running.state("clash") == "failed", PATIENCE_S, "the host to refuse it")
    running.launch("stream_restart", stream=NAME)
    assert commits_batches(running), "the owner goes on"
    assert running.table("latest", NAME).column_names == columns
    other_home = make_stream_claim(tmp_path / "other home" / "streams", NAME)
    with pytest.raises(TableOwnedError, match=f"belongs to stream {NAME} of "):
        claim_existing_tables([running.warehouse / "latest" / NAME], other_home)
    (catalog / "clash.py").unlink()
    running.run_checked("stream", "stop", "clash")
    running.run_checked("stream", "drop", "clash", "--yes", "clash")
    assert running.state("clash") == ""


def test_a_stream_that_spark_refuses_fails_within_seconds_in_one_line(
    running: ScratchStack, catalog: Path
) -> None:
    write_failing_pipelines(catalog)
    started = time.monotonic()
    result = running.run("stream", "start", "unknown_function")
    assert time.monotonic() - started < 45, "it waits for the failure, and not for its 60 s"
    assert result.returncode == 1
    assert "sql: there is no function 'uper' (line 1, column 11 of the query)." in result.stderr
    for text in (
        result.stderr,
        running.run("status").stdout,
        running.run("status", "unknown_function").stdout,
    ):
        assert not any(internal in text for internal in ("Project", "SubqueryAlias", "SQLSTATE", "#"))
    running.run_checked("stream", "stop", "unknown_function")


def test_a_bug_in_a_function_is_shown_with_its_line_and_traceback(
    running: ScratchStack, catalog: Path
) -> None:
    running.run("stream", "start", "buggy", "--wait", "0")
    poll_until(lambda: running.state("buggy") == "failed", PATIENCE_S, "the stream to fail")
    (stream_status,) = (entry for entry in running.status()["streams"] if entry["stream"] == "buggy")
    reason = stream_status["health"]["reason"]
    line = next(n for n, text in enumerate(BUGGY.splitlines(), start=1) if text.endswith("/ 0"))
    location = f"{catalog / 'buggy.py'}:{line}"
    assert reason.startswith(
        f"map convert ({location}): ZeroDivisionError: float division by zero, at sensors/"
    )
    page = running.run("status", "buggy").stdout
    logs = running.run("logs", "host", "--stream", "buggy", "--level", "error", "--since", "10m").stdout
    for text in (page, logs):
        assert f"{location}, in divide" in text
        assert "scala" not in text
    running.run_checked("stream", "stop", "buggy")


def test_the_table_equals_the_results_of_the_topic(running: ScratchStack) -> None:
    with running.without_feed():
        wait_for_windows(running)
        deadline = time.monotonic() + PATIENCE_S
        while differences := find_differences(compute_expected(running), read_latest(running)):
            assert time.monotonic() < deadline, f"{len(differences)} rows differ: {differences[:6]}"
            time.sleep(0.5)
        arguments = ("--from", "time:2026-01-01T00:00", "--beside", "--name", "beside")
        running.run_checked("stream", "replay", NAME, *arguments, seconds=180)
        assert not find_differences(
            compute_expected(running), read_latest(running, "runs/changing/beside/latest")
        )
    running.run_checked("stream", "drain", NAME)


def test_a_stream_without_a_file_is_shown_and_dropped(running: ScratchStack, catalog: Path) -> None:
    (catalog / f"{NAME}.py").unlink()
    assert [one["stream"] for one in running.status()["streams"] if one["file_removed"]] == [NAME]
    batch = running.batch()
    running.run_checked("stream", "drain", NAME)
    running.run_checked("stream", "drop", NAME, "--yes", NAME)
    assert not any((running.warehouse / folder / NAME).exists() for folder in ("latest", "late", "ledger"))
    assert running.state(NAME) == ""
    actions = json.loads(running.run_checked("actions", "--target", NAME, "--json"))
    assert [action["action"] for action in actions][-2:] == ["stream drop", "stream drop"]
    poll_until(lambda: running.batch() > batch, PATIENCE_S, "batches of another stream")


Means = dict[tuple[object, ...], float]
"""The mean of each site and minute, with the number of its records."""


def find_differences(entry: Means, other: Means) -> list[tuple[object, ...]]:
    """List the windows that differ; sums of doubles may differ by rounding."""
    missing = set(entry) ^ set(other)
    different = {
        window
        for window in set(entry) & set(other)
        if not isclose(entry[window], other[window], rel_tol=1e-12)
    }
    return sorted(missing | different, key=repr)


def compute_expected(stack: ScratchStack) -> Means:
    """Compute the results of the last definition from the topic."""
    records = parse_readings(stack.values())
    assert records.num_rows
    query = f"SELECT site, minute, count(*), avg(temperature) FROM records WHERE {FIRST_DEVICES} GROUP BY ALL"
    return {tuple(window): mean for *window, mean in duckdb.connect().sql(query).fetchall()}


def read_latest(stack: ScratchStack, folder: str = "latest") -> Means:
    """Read the means of the table."""
    table = duckdb.from_arrow(stack.table(folder, NAME))
    rows = table.query("latest", "SELECT site, epoch_ms(window_start), n, mean FROM latest").fetchall()
    assert rows
    means = {tuple(window): mean for *window, mean in rows}
    assert len(rows) == len(means), "a window has two rows"
    return means
